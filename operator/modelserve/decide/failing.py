"""Whether starts fail: told from the last failed start until one succeeds, or the spec changes.

A replica that cannot start is deleted and replaced; while the next one tries, nothing is better
than it was. So it is no timer that ends it but a fact: a replica that became ready since.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from modelserve.decide.observation import Replica, ReplicaState


@dataclass(frozen=True, slots=True)
class Failure:
    """The last start that failed: when it was seen so (emulated seconds), and how."""

    at_s: float
    message: str


def advance(
    past: Failure | None,
    replicas: Iterable[Replica],
    given_up: Collection[str],
    troubles: Mapping[str, str],
    now_s: float,
) -> Failure | None:
    """The failure to tell of.

    ``given_up``: UIDs of replicas that are to be deleted; ``troubles``: why, by UID, one does not
    run, where that is known.
    """
    seen = tuple(replicas)
    broken = [r for r in seen if r.state is ReplicaState.STUCK or r.uid in given_up]
    if broken:
        last = max(broken, key=lambda replica: (replica.created_s, replica.name))
        why = troubles.get(last.uid) or "it was not ready in time"
        return Failure(now_s, f"the last start failed, of {last.name} ({why})")
    if past is None or any(_succeeded_since(past, replica) for replica in seen):
        return None
    serving = any(replica.serves for replica in seen)
    trying = any(not replica.serves for replica in seen if not _is_leaving(replica))
    # Where others serve and none is asked for any more, nothing is amiss.
    return None if serving and not trying else past


def _succeeded_since(past: Failure, replica: Replica) -> bool:
    ready_s = replica.ready_since_s
    return replica.serves and ready_s is not None and ready_s > past.at_s


def _is_leaving(replica: Replica) -> bool:
    return replica.state is ReplicaState.TERMINATING
