"""How long one batched step of an engine takes: the roofline terms plus fitted global constants.

Constants, sources and quality of fit: ``catalog/data/constants.yaml``. How far it is from measured
points when the simulated engine runs them: ``servelab validate``.
"""

from dataclasses import dataclass

from modelserve.api.spec import EngineType, Quantization
from modelserve.catalog import constants, gpus
from modelserve.catalog.architecture import Model

ACTIVATION_BYTES = 2


@dataclass(frozen=True, slots=True)
class StepParts:
    """A step's seconds by what they go to; ``prefill_s`` is what prompts add to the rest."""

    weights_s: float
    kv_s: float
    compute_s: float
    all_reduce_s: float
    per_sequence_s: float
    overhead_s: float
    prefill_s: float

    @property
    def total_s(self) -> float:
        """What ``StepLaw.step_s`` says of the same step."""
        return sum(self.by_name().values())

    def by_name(self) -> dict[str, float]:
        """Seconds under stable names."""
        return {
            "weights": self.weights_s,
            "kv": self.kv_s,
            "compute": self.compute_s,
            "all_reduce": self.all_reduce_s,
            "per_sequence": self.per_sequence_s,
            "overhead": self.overhead_s,
            "prefill": self.prefill_s,
        }


@dataclass(frozen=True, slots=True)
class StepLaw:
    """The law for one model on one kind of GPU; make it with ``of``. All times are seconds."""

    model: Model
    tensor_parallel: int
    quantization: Quantization
    kv_bytes_per_element: int
    weight_bytes_per_s: float
    kv_bytes_per_s: float
    compute_flops: float
    attention_flops: float
    layer_overhead_s: float
    per_sequence_s: float
    reduce_small_s: float
    reduce_per_byte_s: float
    reduces_per_step: int
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
    ) -> "StepLaw":
        """The law for that many such GPUs; ``kv_dtype_bytes`` is 2, or 1 for an fp8 cache."""
        fixed = constants.load()
        weights = model.format(quantization)
        fast, link = gpu.link(tensor_parallel)
        share = fixed.all_reduce_share_fast if fast else fixed.all_reduce_share_pcie
        small_s = (
            fixed.all_reduce_small_fast_s
            if fast
            else fixed.all_reduce_small_pcie_per_gpu_s * tensor_parallel
        )
        alone = tensor_parallel == 1
        return cls(
            model=model,
            tensor_parallel=tensor_parallel,
            quantization=Quantization(quantization),
            kv_bytes_per_element=kv_dtype_bytes,
            weight_bytes_per_s=tensor_parallel
            * fixed.weight_share(model.weight_bits(quantization))
            * gpu.bandwidth_bytes_per_s,
            kv_bytes_per_s=model.kv_shards(tensor_parallel)
            * fixed.kv_share
            * gpu.bandwidth_bytes_per_s,
            compute_flops=tensor_parallel * fixed.mfu(weights) * gpu.flops(weights),
            attention_flops=tensor_parallel * fixed.mfu_16_bit * gpu.flops_16_bit,
            layer_overhead_s=model.layers * fixed.overhead_s(engine),
            per_sequence_s=fixed.per_sequence_s(engine),
            reduce_small_s=0.0 if alone else small_s,
            reduce_per_byte_s=0.0
            if alone
            else 2 * (tensor_parallel - 1) / tensor_parallel / (share * link),
            reduces_per_step=model.layers * fixed.all_reduce_calls_per_layer,
            first_token_constant_s=fixed.first_token_constant_s(engine),
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
        ``prefill_context_tokens`` (summed over them) are in the cache already. With
        W = weight bytes read, L layers, P parameters computed per token, F the usable FLOP/s:

            decode  = W / (tp · 0.86 · bandwidth)  +  KV bytes / (shards · 0.95 · bandwidth)
                    + L · (70 µs + 2 all-reduces of B · hidden)  +  B · 32 µs  +  2 P B / F
            prefill = N · 2 P / F  +  attention of N on itself and its context
                    + L · 2 all-reduces of N · hidden
            step    = decode + max(0, prefill − W's time)   a chunk rides on the weights' read
            step    = max(decode's part without sequences, prefill)   with B = 0

        70 µs and 32 µs are vLLM's; other engines have their own.
        """
        if decode_sequences <= 0 and prefill_tokens <= 0:
            return 0.0
        weights_s = self._weights_s(decode_sequences + prefill_tokens)
        fixed_s = weights_s + self.layer_overhead_s + self.reduces_per_step * self.reduce_small_s
        if prefill_tokens <= 0:
            return fixed_s + self._decode_s(decode_sequences, context_tokens)
        prefill_s = self._prefill_s(prefill_tokens, prefill_context_tokens, prefill_sequences)
        if decode_sequences <= 0:
            return max(fixed_s, prefill_s)
        decode_s = self._decode_s(decode_sequences, context_tokens)
        return fixed_s + decode_s + max(0.0, prefill_s - weights_s)

    def parts(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> StepParts:
        """The parts of ``step_s`` of the same arguments; they sum to it."""
        total_s = self.step_s(
            decode_sequences,
            context_tokens,
            prefill_tokens,
            prefill_context_tokens,
            prefill_sequences,
        )
        if total_s == 0.0:
            return StepParts(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        sequences = max(0, decode_sequences)
        weights_s = self._weights_s(sequences + max(0, prefill_tokens))
        kv_s = self._kv_s(sequences, context_tokens) if sequences else 0.0
        compute_s = 2 * self.model.compute_parameters() * sequences / self.compute_flops
        reduce_s = self.reduces_per_step * self.reduce_small_s + self._reduce_s(sequences)
        each_s = sequences * self.per_sequence_s
        without_s = weights_s + kv_s + compute_s + reduce_s + each_s + self.layer_overhead_s
        rest_s = max(0.0, total_s - without_s) if prefill_tokens > 0 else 0.0
        return StepParts(
            weights_s, kv_s, compute_s, reduce_s, each_s, self.layer_overhead_s, rest_s
        )

    def prefill_parts(self, tokens: int) -> dict[str, float]:
        """Seconds of a prompt's linear layers, attention, all-reduces, and of the weights' read."""
        pairs = tokens * tokens / 2
        width = self.model.heads * self.model.head_dim * self.model.layers
        return {
            "compute": 2 * self.model.compute_parameters() * tokens / self.compute_flops,
            "attention": 4 * pairs * width / self.attention_flops,
            "all_reduce": self._reduce_s(tokens),
            "weights": self._weights_s(tokens),
            "overhead": self.layer_overhead_s + self.reduces_per_step * self.reduce_small_s,
        }

    def decode_step_s(self, batch: int, context_tokens_each: int) -> float:
        """Seconds of a step in which ``batch`` sequences of that length get a token each."""
        return self.step_s(batch, batch * context_tokens_each)

    def prefill_s(self, tokens: int) -> float:
        """Seconds of computing a prompt of ``tokens`` on an idle engine, in one chunk."""
        return self.step_s(0, 0, tokens)

    def first_token_s(self, prompt_tokens: int) -> float:
        """Seconds to the first token on an idle engine, without HTTP and tokenizer."""
        return self.prefill_s(prompt_tokens) + self.first_token_constant_s

    def service_s(self, prompt_tokens: int, output_tokens: int, batch: int) -> float:
        """Seconds one request takes in a closed loop of ``batch`` equal requests.

        Every other running request prefills once while this one decodes (constants' closed form).
        """
        context = prompt_tokens + output_tokens // 2
        step_s = self.decode_step_s(batch, context)
        extra_s = max(0.0, self._prefill_s(prompt_tokens, 0, 1) - self._weights_s(batch))
        others_s = (batch - 1) * extra_s
        return self.first_token_s(prompt_tokens) + max(0, output_tokens - 1) * step_s + others_s

    def _weights_s(self, tokens: int) -> float:
        read = self.model.read_bytes_per_step(self.quantization, tokens)
        return read / self.weight_bytes_per_s

    def _decode_s(self, sequences: int, context_tokens: int) -> float:
        """What decoding sequences add to weights and overhead."""
        compute_s = 2 * self.model.compute_parameters() * sequences / self.compute_flops
        reduce_s = self._reduce_s(sequences)
        kv_s = self._kv_s(sequences, context_tokens)
        return kv_s + compute_s + reduce_s + sequences * self.per_sequence_s

    def _kv_s(self, sequences: int, context_tokens: int) -> float:
        """Reading the KV cache of sequences that are equally long, but for one token."""
        each, rest = divmod(context_tokens, sequences)
        kv_bytes = (
            self.model.kv_bytes(each, self.kv_bytes_per_element) * (sequences - rest)
            + self.model.kv_bytes(each + 1, self.kv_bytes_per_element) * rest
        )
        return kv_bytes / self.kv_bytes_per_s

    def _prefill_s(self, tokens: int, context_tokens: int, sequences: int) -> float:
        """Computing ``tokens`` of equal prompts, each attending to its context and itself."""
        pairs = tokens / max(1, sequences) * (context_tokens + tokens / 2)
        width = self.model.heads * self.model.head_dim * self.model.layers
        linear_s = 2 * self.model.compute_parameters() * tokens / self.compute_flops
        attention_s = 4 * pairs * width / self.attention_flops
        return linear_s + attention_s + self._reduce_s(tokens)

    def _reduce_s(self, tokens: int) -> float:
        """The part of all-reduces that grows with the tokens in the step."""
        per_call = tokens * self.model.hidden * ACTIVATION_BYTES * self.reduce_per_byte_s
        return self.reduces_per_step * per_call
