"""A step law that a fault slows down."""

from collections.abc import Callable

from servelab.engine.core.laws import DecodeTerms, StepLaw


class Slowed:
    """The inner law's seconds times ``factor``."""

    def __init__(self, inner: StepLaw) -> None:
        self.factor = 1.0
        self._inner = inner
        self._heard: list[Callable[[], None]] = []

    def set(self, factor: float) -> None:
        """From the next step on."""
        self.factor = factor
        for forget in self._heard:
            forget()

    def on_change(self, forget: Callable[[], None]) -> None:
        """Who has kept its terms wants to hear that they are others."""
        self._heard.append(forget)

    def decode_terms(self, decode_sequences: int) -> DecodeTerms | None:
        """The inner law's, each times the factor."""
        ask = getattr(self._inner, "decode_terms", None)
        found: DecodeTerms | None = None if ask is None else ask(decode_sequences)
        if found is None:
            return None
        fixed_s, per_token_s, least_s = found
        return fixed_s * self.factor, per_token_s * self.factor, least_s * self.factor

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        """Seconds of a step."""
        plain_s = self._inner.step_s(
            *(decode_sequences, context_tokens, prefill_tokens),
            *(prefill_context_tokens, prefill_sequences),
        )
        return plain_s * self.factor
