"""One probe of one container: when it is due, and what a result means."""

from dataclasses import dataclass, field

from servelab.node import podspec

# From a container's start to its first probe, in real seconds: what a kubelet needs to get to it.
FIRST_REAL_S = 0.01


@dataclass(slots=True)
class Prober:
    """Counts results as a kubelet does. Times are Unix seconds, real.

    ``passing`` starts as a kubelet's does: a container counts as not started and not ready until
    its probes say so, and as alive until they say otherwise.
    """

    probe: podspec.Probe
    started_at_real_s: float
    passing: bool = False
    next_at_real_s: float = field(init=False)
    _streak: int = 0
    _last: bool | None = None

    def __post_init__(self) -> None:
        self.next_at_real_s = self.started_at_real_s + self.probe.initial_delay_s + FIRST_REAL_S
        if self.probe.kind is podspec.ProbeKind.LIVENESS:
            self.passing = True

    def due(self, now_real_s: float) -> bool:
        return now_real_s >= self.next_at_real_s

    def at_once(self, now_real_s: float) -> None:
        """Probe without waiting for the period, as is done when a startup probe has passed."""
        earliest = self.started_at_real_s + self.probe.initial_delay_s
        self.next_at_real_s = max(now_real_s, earliest)

    def observe(self, ok: bool, now_real_s: float) -> bool:
        """Take one result; returns whether ``passing`` flipped, or (liveness) gave up just now."""
        missed = int(max(0.0, now_real_s - self.next_at_real_s) / self.probe.period_s)
        self.next_at_real_s += (missed + 1) * self.probe.period_s
        self._streak = self._streak + 1 if ok is self._last else 1
        self._last = ok
        needed = self.probe.success_threshold if ok else self.probe.failure_threshold
        if self._streak < needed or ok is self.passing:
            return False
        self.passing = ok
        return True

    @property
    def settled(self) -> bool:
        """Whether it passes, and the last result did not speak against it."""
        return self.passing and self._last is not False

    @property
    def exhausted(self) -> bool:
        """Whether failures have reached the threshold."""
        return self._last is False and self._streak >= self.probe.failure_threshold
