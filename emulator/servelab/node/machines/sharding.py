"""Which of several emulator processes plays which node: rendezvous hashing over live members. Pure.

When a member comes or goes, only nodes that it gains or had change hands. Liveness is judged by how
long *we* have seen no renewal, on our own monotonic clock; no stamps of others are compared. A
member gives up what it plays after ``GIVE_UP_REAL_S`` without a renewal of its own that got
through, before anybody may think it dead.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from modelserve import ports
from modelserve.api import names

RENEW_REAL_S = 3.0
GIVE_UP_REAL_S = 10.0
LAPSE_REAL_S = 15.0


def owner(key: str, members: Iterable[str]) -> str:
    """The member that the key falls to; empty if there is none. Their order does not matter."""
    return max(members, key=lambda member: (_weight(member, key), member), default="")


def key_of_node(node: ports.Object) -> str:
    """What is hashed for a node: its name, or its pool's if its nodes share links.

    Nodes that share a registry or a storage backend must be played by one process, as it alone
    knows what moves over them.
    """
    meta = node["metadata"]
    annotations = meta.get("annotations") or {}
    shared = (names.STORAGE_SHARED_BANDWIDTH, names.REGISTRY_SHARED_BANDWIDTH)
    if any(annotations.get(name) for name in shared):
        return key_of_pool((meta.get("labels") or {}).get(names.LABEL_POOL, ""))
    return f"node/{meta['name']}"


def key_of_pool(name: str) -> str:
    """What is hashed for the keeping of a pool: its nodes' coming and going, and its status."""
    return f"pool/{name}"


@dataclass(slots=True)
class Roster:
    """Members by name, with the last renewal seen of each. Monotonic real seconds."""

    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)

    def see(self, name: str, stamp: str, now_real_s: float) -> None:
        """A member's Lease was told; only another ``stamp`` than before is a renewal."""
        known = self._seen.get(name)
        if known is None or known[0] != stamp:
            self._seen[name] = stamp, now_real_s

    def forget(self, name: str) -> None:
        """Its Lease was withdrawn."""
        self._seen.pop(name, None)

    def live(self, now_real_s: float) -> frozenset[str]:
        """Those that may still be at work."""
        return frozenset(
            name for name, (_, at) in self._seen.items() if now_real_s - at < LAPSE_REAL_S
        )


@dataclass(slots=True)
class Mandate:
    """Whether this process may still write for what it plays.

    ``term`` changes with each lapse: what was taken in another may be somebody else's by now.
    """

    term: int = 0
    _until_real_s: float = -math.inf

    def renewed(self, asked_real_s: float, now_real_s: float) -> None:
        """A renewal got through that was asked for then: others count from no earlier."""
        if not self.holds(now_real_s):
            self.term += 1
        self._until_real_s = asked_real_s + GIVE_UP_REAL_S

    def holds(self, now_real_s: float) -> bool:
        return now_real_s < self._until_real_s


def may_take(holder: str, us: str, live: frozenset[str]) -> bool:
    """Whether a node whose Lease names that holder is free for us."""
    return holder in ("", us) or holder not in live


def _weight(member: str, key: str) -> bytes:
    return hashlib.blake2b(f"{member}\n{key}".encode(), digest_size=8).digest()
