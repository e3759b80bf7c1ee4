"""An engine's gauges and step law with something put over them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from servelab.engine.admin import documents, faults
from servelab.engine.admin.faults import Injected
from servelab.engine.core.laws import DecodeTerms, StepLaw
from servelab.engine.metrics.exporting import Load

Wave = documents.Fixed | documents.Ramp | documents.Square | documents.Sine


@dataclass(frozen=True, slots=True)
class Shown:
    """A metric's wave, and when it was set, in emulated seconds."""

    document: Wave
    since_s: float

    def at(self, now_s: float) -> float | None:
        """What to show; None for the truth."""
        document, t_s = self.document, now_s - self.since_s
        if not document.span.holds(t_s):
            return None
        return document.wave.at(t_s - document.start_s)


class Overridden:
    """A Load that shows waves where there are any, and the truth elsewhere."""

    def __init__(self, inner: Load, shown: Mapping[str, Shown], now_s: Callable[[], float]) -> None:
        self._inner = inner
        self._shown = shown
        self._now_s = now_s

    @property
    def running(self) -> int:
        """Requests in the batch."""
        value = self._value("running")
        return self._inner.running if value is None else round(value)

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        value = self._value("waiting")
        return self._inner.waiting if value is None else round(value)

    @property
    def kv_usage(self) -> float:
        """Share of KV blocks in use, 0 to 1."""
        value = self._value("kv_usage")
        return self._inner.kv_usage if value is None else value

    @property
    def prefix_tokens(self) -> tuple[int, int]:
        """Tokens looked up in the prefix cache so far, and those found."""
        return self._inner.prefix_tokens

    def _value(self, name: str) -> float | None:
        shown = self._shown.get(name)
        return None if shown is None else shown.at(self._now_s())


class SlowedLaw:
    """A step law under the faults ``slow`` and ``hang``; with one set, it offers no terms."""

    def __init__(
        self, inner: StepLaw, injected: Mapping[str, Injected], now_s: Callable[[], float]
    ) -> None:
        self._inner = inner
        self._faults = injected
        self._now_s = now_s
        self._heard: list[Callable[[], None]] = []

    def on_change(self, forget: Callable[[], None]) -> None:
        """Who has kept its terms wants to hear that they are others."""
        self._heard.append(forget)

    def changed(self) -> None:
        """Faults were set or taken back."""
        for forget in self._heard:
            forget()

    def decode_terms(self, decode_sequences: int) -> DecodeTerms | None:
        """The inner law's, as long as no fault may change them."""
        ask = getattr(self._inner, "decode_terms", None)
        return None if self._faults or ask is None else ask(decode_sequences)

    def step_s(
        self,
        decode_sequences: int,
        context_tokens: int,
        prefill_tokens: int = 0,
        prefill_context_tokens: int = 0,
        prefill_sequences: int = 1,
    ) -> float:
        """Seconds of a step, times what slows it; one that falls into a hang waits for its end."""
        plain_s = self._inner.step_s(
            *(decode_sequences, context_tokens, prefill_tokens),
            *(prefill_context_tokens, prefill_sequences),
        )
        if not self._faults:
            return plain_s
        now_s = self._now_s()
        if faults.hangs(self._faults, now_s):
            return faults.FOR_EVER_S
        return plain_s * faults.factor(self._faults, now_s)
