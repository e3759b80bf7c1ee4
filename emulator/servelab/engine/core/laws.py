"""What the core asks of a step law, and the simplest one."""

from dataclasses import dataclass
from typing import Protocol


class StepLaw(Protocol):
    """How long a step takes, in seconds. Context tokens are sums over the sequences.

    A law may also have ``decode_terms(decode_sequences)``: the seconds of a step of nothing but
    decoding as a fixed part, one for each context token, and what they are at least; or None if
    they are no such sum. One whose terms may change has ``on_change(forget)`` as well.
    """

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float: ...


DecodeTerms = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class SteadyLaw:
    """All steps take as long, in seconds: what is recorded or tested then shows step by step."""

    seconds: float

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        """The same whatever it computes."""
        return self.seconds

    def decode_terms(self, decode_sequences: int) -> DecodeTerms:
        """The same for any context."""
        return self.seconds, 0.0, 0.0
