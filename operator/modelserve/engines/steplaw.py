"""How long one batched step of an engine takes: the roofline terms plus fitted constants.

Constants, sources and quality of fit: ``catalog/data/constants.yaml``. How far it is from measured
points when the simulated engine runs them: ``servelab validate``.
"""

from dataclasses import dataclass

from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import constants, gpus, images
from modelserve.catalog.architecture import Model
from modelserve.engines import generations, roofline, types
from modelserve.engines.generations import Generation

ACTIVATION_BYTES = 2
FP4_FORMAT = "nvfp4"


@dataclass(frozen=True, slots=True)
class StepLaw:
    """The law for one model on one kind of GPU; make it with ``of``. All times are seconds.

    ``…_token_s`` are for each token of the step, ``…_row_s`` for each sequence that gets a token
    (output head and sampling), ``…_pair_s`` for each pair of a prompt's token and one before it.
    """

    times: constants.Times
    weights_s: float
    idle_experts_s: float
    idle_share: float
    compute_token_s: float
    compute_row_s: float
    sampling_row_s: float
    attention_pair_s: float
    kv_token_s: float
    kv_token_beyond_s: float
    window_tokens: int | None
    layers_s: float
    launch_s: float
    captured_launch_s: float
    decode_launch_s: float
    prompt_step_s: float
    reduce_fixed_s: float
    reduce_token_s: float
    reduce_row_s: float
    first_token_constant_s: float

    @classmethod
    def of(
        cls,
        model: Model,
        gpu: gpus.Gpu,
        tensor_parallel: int,
        quantization: str = Quantization.NONE,
        engine: EngineType = EngineType.VLLM,
        kv_dtype_bytes: int = 2,
        *,
        generation: Generation | None = None,
        fp4_units: bool = False,
        eager: bool = False,
    ) -> "StepLaw":
        """The law for that many such GPUs; ``kv_dtype_bytes`` is 2, or 1 for an fp8 cache.

        ``generation`` is the engine's newest if None. ``fp4_units``: four-bit weights are
        multiplied by fp4 units, where the GPU has them, instead of being widened to 16 bit.
        ``eager``: no step is a CUDA graph.
        """
        fixed = constants.load()
        times = fixed.times(generation or generations.of(engine))
        layers, several = model.layers, tensor_parallel > 1
        bytes_per_s = gpu.bandwidth_bytes_per_s
        read = fixed.weight_share(model.weight_bits(quantization)) * gpu.bandwidth_share
        read_bytes_per_s = tensor_parallel * read * bytes_per_s
        whole, idle, idle_share = model.read_terms(quantization)
        kv_bytes_per_s = model.kv_shards(tensor_parallel) * fixed.kv_share * bytes_per_s
        kv_s = kv_dtype_bytes / 2 / kv_bytes_per_s
        flops = roofline.flops(model, gpu, quantization, times, fp4_units) * tensor_parallel
        token_s, row_s = roofline.compute(model, flops)
        small_s, per_byte_s = roofline.all_reduce(fixed, gpu, tensor_parallel)
        reduces = layers * fixed.all_reduce_calls_per_layer
        launch_s = layers * (times.launch_s + several * times.launch_parallel_s)
        return cls(
            times=times,
            weights_s=whole / read_bytes_per_s,
            idle_experts_s=idle / read_bytes_per_s,
            idle_share=idle_share,
            compute_token_s=token_s,
            compute_row_s=row_s,
            sampling_row_s=fixed.sampling_bytes_per_token * model.vocab / bytes_per_s,
            attention_pair_s=roofline.attention(model, gpu) / tensor_parallel,
            kv_token_s=model.kv_bytes_per_token * kv_s,
            kv_token_beyond_s=model.kv_bytes_per_token_beyond_window * kv_s,
            window_tokens=model.window_tokens,
            layers_s=layers * (times.layer_s + model.latent_kv * fixed.latent_layer_s)
            + model.expert_layers() * times.expert_layer_s,
            launch_s=launch_s,
            captured_launch_s=launch_s if eager else layers * times.captured_launch_s,
            decode_launch_s=launch_s if eager else 0.0,
            prompt_step_s=times.prompt_step_s + several * times.prompt_step_parallel_s,
            reduce_fixed_s=reduces * small_s,
            reduce_token_s=2 * reduces * model.hidden * ACTIVATION_BYTES * per_byte_s,
            reduce_row_s=model.vocab * ACTIVATION_BYTES * per_byte_s,
            first_token_constant_s=times.front_s + fixed.http_front_s,
        )

    @classmethod
    def of_launch(cls, launch: types.Launch, gpu: gpus.Gpu) -> "StepLaw":
        """The law of an engine as it is started; its image's tag says which generation it is."""
        return cls.of(
            launch.model,
            gpu,
            launch.tensor_parallel,
            launch.quantization,
            launch.engine,
            launch.kv_dtype_bytes,
            generation=generations.of(launch.engine, images.split(launch.image)[1]),
            eager=launch.enforce_eager,
        )

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        """Seconds of one batched step.

        ``decode_sequences`` B produce a token each and hold ``context_tokens`` together;
        ``prefill_tokens`` N of ``prefill_sequences`` prompts are computed besides, of which
        ``prefill_context_tokens`` (summed over them) are in the cache already.

        The GPU reads weights (of experts those that the step's tokens are routed to) and KV cache,
        multiplies, attends, reduces over the GPUs, and has a fixed time per layer. In a step with
        prompts it waits for the host to launch layers where that takes longer. Host work of the
        step and its sequences is added, or is a lower bound where the engine overlaps it. An engine
        that does not mix the two computes prompts first and decodes after.
        """
        if prefill_tokens <= 0:
            if decode_sequences <= 0:
                return 0.0
            return self._decode_s(decode_sequences, context_tokens)
        prompts = max(1, prefill_sequences)
        pairs = prefill_tokens / prompts * (prefill_context_tokens + prefill_tokens / 2)
        if decode_sequences <= 0 or not self.times.mixes:
            prompt_s = self._prompt_s(prefill_tokens, prompts, pairs, 0.0)
            return prompt_s + self.step_s(decode_sequences, context_tokens)
        kv_s = self.kv_s(decode_sequences, context_tokens)
        return self._prompt_s(
            decode_sequences + prefill_tokens, decode_sequences + prompts, pairs, kv_s
        )

    def decode_terms(self, decode_sequences: int) -> tuple[float, float, float] | None:
        """A decode step's seconds: fixed, per context token, and least; None if no such sum."""
        if self.window_tokens is not None:
            return None
        gpu_s = self._gpu_s(decode_sequences, decode_sequences)
        host_s = self.host_s(decode_sequences)
        if self.times.overlapped:
            return gpu_s, self.kv_token_s, max(host_s, self.decode_launch_s)
        return gpu_s + host_s, self.kv_token_s, self.decode_launch_s + host_s

    def decode_step_s(self, batch: int, context_tokens_each: int) -> float:
        """Seconds of a step in which ``batch`` sequences of that length get a token each."""
        return self.step_s(batch, batch * context_tokens_each)

    def prefill_s(self, tokens: int) -> float:
        """Seconds of computing a prompt of ``tokens`` on an idle engine, in one chunk."""
        return self.step_s(0, 0, tokens)

    def first_token_s(self, prompt_tokens: int) -> float:
        """Seconds to the first token on an idle engine."""
        return self.prefill_s(prompt_tokens) + self.first_token_constant_s

    def service_s(self, prompt_tokens: int, output_tokens: int, batch: int) -> float:
        """Seconds one request takes in a closed loop of ``batch`` equal requests.

        Every other running request's prompt is computed once while this one decodes: in a step of
        its own as long as there are fewer prompts than steps, else several in each.
        """
        steps = max(0, output_tokens - 1)
        context = batch * (prompt_tokens + output_tokens // 2)
        prompts = (batch - 1) / max(1, steps)
        if prompts <= 1:
            step_s = self.step_s(batch, context)
            step_s += prompts * (self.step_s(batch, context, prompt_tokens) - step_s)
        else:
            each = max(1, round(prompts))
            step_s = self.step_s(batch, context, round(prompts * prompt_tokens), 0, each)
        return self.first_token_s(prompt_tokens) + steps * step_s

    def _decode_s(self, sequences: int, context_tokens: int) -> float:
        terms = self.decode_terms(sequences)
        if terms is not None:
            fixed_s, per_token_s, least_s = terms
            return max(fixed_s + per_token_s * context_tokens, least_s)
        gpu_s = self._gpu_s(sequences, sequences) + self.kv_s(sequences, context_tokens)
        gpu_s = max(gpu_s, self.decode_launch_s)
        host_s = self.host_s(sequences)
        return max(gpu_s, host_s) if self.times.overlapped else gpu_s + host_s

    def _prompt_s(self, tokens: int, rows: int, pairs: float, kv_s: float) -> float:
        """A step with prompts: ``tokens`` and ``rows`` of all, ``pairs`` of its prompts."""
        captured = tokens <= self.times.captured_tokens
        launch_s = self.captured_launch_s if captured else self.launch_s
        gpu_s = self._gpu_s(tokens, rows) + pairs * self.attention_pair_s + kv_s
        gpu_s, host_s = max(gpu_s, launch_s), self.host_s(rows)
        both_s = max(gpu_s, host_s) if self.times.overlapped else gpu_s + host_s
        return both_s + self.prompt_step_s

    def _gpu_s(self, tokens: int, rows: int) -> float:
        """All of the GPU's time but attention and KV cache."""
        linear_s = self.linear_s(tokens, rows) + rows * self.sampling_row_s
        return linear_s + self.reduce_s(tokens, rows) + self.layers_s

    def linear_s(self, tokens: int, rows: int) -> float:
        """Matrices: reading and computing, of which the shorter may hide behind the longer."""
        read_s = self.read_s(tokens)
        compute_s = tokens * self.compute_token_s + rows * self.compute_row_s
        return read_s + compute_s - self.times.hidden_share * min(read_s, compute_s)

    def read_s(self, tokens: int) -> float:
        """Reading weights: of experts those that so many tokens are routed to."""
        if not self.idle_experts_s:
            return self.weights_s
        idle: float = self.idle_share ** max(1, tokens)
        return self.weights_s - self.idle_experts_s * idle

    def kv_s(self, sequences: int, context_tokens: int) -> float:
        """Reading the KV cache of equally long sequences; no layer reads beyond its window."""
        if self.window_tokens is None:
            return self.kv_token_s * context_tokens
        beyond = max(0, context_tokens - self.window_tokens * sequences)
        return self.kv_token_s * (context_tokens - beyond) + self.kv_token_beyond_s * beyond

    def reduce_s(self, tokens: int, rows: int) -> float:
        """All-reduces after attention and feed-forward, and gathering the rows' logits."""
        return self.reduce_fixed_s + tokens * self.reduce_token_s + rows * self.reduce_row_s

    def host_s(self, sequences: int) -> float:
        """What the host does for a step, whether or not it hides behind the GPU."""
        return self.times.step_s + sequences * self.times.sequence_s
