"""How many events a kubelet lets through: client-go's spam filter.

By object and type, 25 at once, then one every five minutes (tools/record/events_cache.go).
"""

from collections import OrderedDict
from dataclasses import dataclass, field

BURST = 25
REFILL_REAL_S = 300.0
KNOWN_LIMIT = 4096
KINDS = ("Normal", "Warning")


@dataclass(slots=True)
class Filter:
    """Tokens by key. ``now_s`` never goes back, real seconds."""

    _left: OrderedDict[tuple[str, str], tuple[float, float]] = field(default_factory=OrderedDict)

    def lets(self, uid: str, kind: str, now_s: float) -> bool:
        """Whether an event of that type about that object may go out."""
        tokens, since_s = self._left.pop((uid, kind), (float(BURST), now_s))
        tokens = min(float(BURST), tokens + (now_s - since_s) / REFILL_REAL_S)
        allowed = tokens >= 1
        self._left[uid, kind] = (tokens - 1 if allowed else tokens, now_s)
        if len(self._left) > KNOWN_LIMIT:
            self._left.popitem(last=False)
        return allowed

    def forget(self, uid: str) -> None:
        """The object is gone: nothing will be said of it any more."""
        for kind in KINDS:
            self._left.pop((uid, kind), None)
