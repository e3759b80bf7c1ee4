"""A kubelet's back-offs, after client-go's flowcontrol: doubled at each failure, then forgotten."""

from dataclasses import dataclass, field

FIRST_REAL_S = 10.0
CAP_REAL_S = 300.0


@dataclass(slots=True)
class _Entry:
    delay_real_s: float
    updated_s: float


@dataclass(slots=True)
class Backoff:
    """Delays by key. Times are real seconds of any one clock."""

    first_real_s: float = FIRST_REAL_S
    cap_real_s: float = CAP_REAL_S
    entries: dict[str, _Entry] = field(default_factory=dict)

    def delay_real_s(self, key: str) -> float:
        found = self.entries.get(key)
        return 0.0 if found is None else found.delay_real_s

    def holds_since(self, key: str, event_s: float, now_s: float) -> bool:
        """Whether, counted from that event, the delay is not over."""
        found = self.entries.get(key)
        if found is None or self._forgotten(found, event_s):
            return False
        return now_s - event_s < found.delay_real_s

    def holds_since_update(self, key: str, now_s: float) -> bool:
        """Whether, counted from the last failure, the delay is not over."""
        found = self.entries.get(key)
        if found is None or self._forgotten(found, now_s):
            return False
        return now_s - found.updated_s < found.delay_real_s

    def failed(self, key: str, event_s: float, now_s: float) -> None:
        """One failure more: the first delay, or twice the last."""
        found = self.entries.get(key)
        if found is None or self._forgotten(found, event_s):
            self.entries[key] = _Entry(self.first_real_s, now_s)
        else:
            self.entries[key] = _Entry(min(self.cap_real_s, 2 * found.delay_real_s), now_s)

    def resume(self, key: str, failures: int, last_s: float) -> None:
        """As after so many failures in a row, the last of them then."""
        delay_real_s = self.first_real_s * 2.0 ** min(failures - 1, 30)
        self.entries[key] = _Entry(min(self.cap_real_s, delay_real_s), last_s)

    def _forgotten(self, entry: _Entry, event_s: float) -> bool:
        return event_s - entry.updated_s > 2 * self.cap_real_s
