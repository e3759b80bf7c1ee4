"""Replicas that leave and do not finish their streams in time."""

from modelserve.api import spec as specs
from modelserve.reconciling.memory import Memory
from modelserve.reconciling.observe import Seen
from modelserve.reconciling.sightings import Now

# Beyond the drain, for the kubelet to notice.
SLACK_REAL_S = 10.0


def overdue(
    memory: Memory, seen: Seen, spec: specs.ModelServeSpec, now: Now
) -> tuple[list[str], float | None]:
    """A sentence for each that is overdue now, once; and the real instant the next one will be."""
    sentences: list[str] = []
    due_real_s: float | None = None
    for uid, pod in seen.pods.items():
        sighting = memory.sightings[uid]
        since_s = sighting.terminating_since_s
        if since_s is None or sighting.drain_told:
            continue
        left_s = since_s + spec.drain_seconds - now.emulated_s
        at_real_s = now.real_s + left_s / now.scale + SLACK_REAL_S
        if at_real_s > now.real_s:
            due_real_s = at_real_s if due_real_s is None else min(due_real_s, at_real_s)
            continue
        sighting.drain_told = True
        name, most_s = pod["metadata"]["name"], spec.drain_seconds
        sentences.append(f"{name} did not finish its streams within drainSeconds ({most_s} s)")
    return sentences, due_real_s
