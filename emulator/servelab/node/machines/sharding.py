"""Which of several emulator processes plays which node: rendezvous hashing over live members. Pure.

When a member comes or goes, only nodes that it gains or had change hands. A member gives up what it
plays after ``GIVE_UP_REAL_S`` without a renewal of its own that got through, before anybody may
think it dead.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from modelserve import ports
from modelserve.adapters import lapsing
from modelserve.api import names

RENEW_REAL_S = 3.0
GIVE_UP_REAL_S = 10.0
LAPSE_REAL_S = 15.0
# What passes between two looks that lie further apart is held against nobody.
BLIND_REAL_S = LAPSE_REAL_S / 3
# Nor while one takes longer: with a pause before and after, that is a lapse.
PATIENCE_REAL_S = LAPSE_REAL_S - 2 * RENEW_REAL_S


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
    """Members by name, with how long each has not been seen to renew its Lease."""

    _known: dict[str, lapsing.Stillness] = field(default_factory=dict)

    def see(self, stamps: Mapping[str, str], now_real_s: float, took_real_s: float = 0.0) -> None:
        """The Leases that there are, with their last renewals; empty for one withdrawn.

        To ask for them took that long. A Lease that somebody deleted says nothing of its process:
        that one lapses.
        """
        for name in stamps.keys() - self._known.keys():
            self._known[name] = lapsing.Stillness(BLIND_REAL_S, PATIENCE_REAL_S)
        for name, found in tuple(self._known.items()):
            if name not in stamps:
                found.look(now_real_s, took_real_s)
            elif stamps[name]:
                found.see(stamps[name], now_real_s, took_real_s)
            if stamps.get(name) == "" or (name not in stamps and not _lives(found)):
                del self._known[name]

    def live(self) -> frozenset[str]:
        """Those that may still be at work."""
        return frozenset(name for name, found in self._known.items() if _lives(found))


def may_take(holder: str, us: str, live: frozenset[str]) -> bool:
    """Whether a node whose Lease names that holder is free for us."""
    return holder in ("", us) or holder not in live


def _lives(member: lapsing.Stillness) -> bool:
    return member.counted_real_s < LAPSE_REAL_S


def _weight(member: str, key: str) -> bytes:
    return hashlib.blake2b(f"{member}\n{key}".encode(), digest_size=8).digest()
