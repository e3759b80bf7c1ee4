"""What the seconds of a step go to: the terms of its law one by one, for people to read."""

from dataclasses import dataclass

from modelserve.engines.steplaw import StepLaw


@dataclass(frozen=True, slots=True)
class StepParts:
    """A step's seconds by what they go to; ``prefill_s`` is what prompts add to the rest.

    ``per_sequence_s`` is host work that does not hide behind the GPU.
    """

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


def of_step(
    law: StepLaw,
    decode_sequences: int,
    context_tokens: int,
    prefill_tokens: int = 0,
    prefill_context_tokens: int = 0,
    prefill_sequences: int = 1,
) -> StepParts:
    """The parts of the law's ``step_s`` of the same arguments; they sum to it."""
    total_s = law.step_s(
        decode_sequences,
        context_tokens,
        prefill_tokens,
        prefill_context_tokens,
        prefill_sequences,
    )
    if total_s == 0.0:
        return StepParts(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    sequences = max(0, decode_sequences)
    # Experts that only prompts need count as theirs.
    weights_s = law.read_s(sequences)
    compute_s = law.linear_s(sequences, sequences) - weights_s
    compute_s += sequences * law.sampling_row_s
    kv_s = law.kv_s(sequences, context_tokens) if sequences else 0.0
    reduce_s = law.reduce_s(sequences, sequences)
    gpu_s = weights_s + compute_s + kv_s + reduce_s + law.layers_s
    waits_s = max(0.0, law.decode_launch_s - gpu_s) if sequences else 0.0
    gpu_s += waits_s
    host_s = law.host_s(sequences) if sequences else 0.0
    shown_s = max(0.0, host_s - gpu_s) if law.times.overlapped else host_s
    prompts_s = max(0.0, total_s - gpu_s - shown_s) if prefill_tokens > 0 else 0.0
    overhead_s = law.layers_s + waits_s
    return StepParts(weights_s, kv_s, compute_s, reduce_s, shown_s, overhead_s, prompts_s)


def of_prompt(law: StepLaw, tokens: int) -> dict[str, float]:
    """Seconds of a prompt's linear layers, attention, all-reduces, weights' read, and rest."""
    weights_s = law.read_s(tokens)
    parts = {
        "compute": law.linear_s(tokens, 1) - weights_s + law.sampling_row_s,
        "attention": tokens * tokens / 2 * law.attention_pair_s,
        "all_reduce": law.reduce_s(tokens, 1),
        "weights": weights_s,
    }
    return {**parts, "overhead": law.prefill_s(tokens) - sum(parts.values())}
