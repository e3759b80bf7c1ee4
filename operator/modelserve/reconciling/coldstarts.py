"""Measures cold starts from the phase stamps of pods that have just become ready."""

from collections.abc import Iterator

from modelserve import ports
from modelserve.api import status as statuses
from modelserve.api import wire
from modelserve.decide import coldstart, observation
from modelserve.reconciling import memory as memories
from modelserve.reconciling import sightings
from modelserve.reconciling.observe import Seen
from modelserve.reconciling.sightings import Now, Sighting
from modelserve.reconciling.world import Uid


def measure(memory: memories.Memory, seen: Seen, now: Now) -> Iterator[tuple[ports.Object, str]]:
    """Take down what is new. Yields each pod that started, with its cold start in a sentence.

    The status in ``memory`` is updated as the pods are yielded.
    """
    for replica in seen.observed.replicas:
        uid = Uid(replica.uid)
        sighting = memory.sightings[uid]
        if sighting.measured or not replica.serves:
            continue
        if sighting.restored:
            sighting.measured = True
            continue
        took = parts_of(seen.pods[uid], sighting, now)
        if took is None:
            continue
        sighting.measured = True
        _take_down(memory, seen, memories.parts(took))
        yield seen.pods[uid], sentence(replica, took, sighting.predicted)


def parts_of(pod: ports.Object, sighting: Sighting, now: Now) -> coldstart.ColdStart | None:
    """The measured parts; None until the stamps are complete, or where there are none."""
    stamps = sightings.phase_stamps(pod)
    if stamps is None or sighting.ready_since_s is None:
        return None
    warm = [s for s in stamps.stamps if s.phase is wire.Phase.WARM_UP and s.end_ms]
    if not warm:
        return None
    started_s = sighting.created_s if sighting.started_s is None else sighting.started_s
    waited_s = max(0.0, started_s - sighting.created_s)
    # What was waited for a node is not the scheduler's.
    unplaced_s = min(waited_s, sighting.unplaced_s)
    admitted_s = sighting.ready_since_s - now.at(warm[-1].end_ms / 1000)
    probe_s = stamps.emulated_s(wire.Phase.PROBE)
    return coldstart.ColdStart(
        # Nobody stamps what the real scheduler takes: from the pod's creation to its binding.
        scheduling_s=stamps.emulated_s(wire.Phase.SCHEDULING) or waited_s - unplaced_s,
        provisioning_s=stamps.emulated_s(wire.Phase.PROVISIONING) or unplaced_s,
        image_pull_s=stamps.emulated_s(wire.Phase.IMAGE_PULL),
        weight_load_s=stamps.emulated_s(wire.Phase.WEIGHT_LOAD),
        warm_up_s=stamps.emulated_s(wire.Phase.WARM_UP),
        # A holding gateway's probe may have been quicker than the kubelet's.
        probe_s=max(0.0, min(admitted_s, probe_s) if probe_s else admitted_s),
    )


def sentence(
    replica: observation.Replica,
    took: coldstart.ColdStart,
    predicted: coldstart.ColdStart | None,
) -> str:
    """``… ready after 131.2 s: image pull 77.7 s, …; predicted 131.2 s``."""
    named = (
        ("scheduling", took.scheduling_s),
        ("provisioning", took.provisioning_s),
        ("image pull", took.image_pull_s),
        ("weight load", took.weight_load_s),
        ("warm-up", took.warm_up_s),
        ("probe", took.probe_s),
    )
    parts = ", ".join(f"{name} {value:.1f} s" for name, value in named if value >= 0.05)
    expected = f"; predicted {predicted.total_s:.1f} s" if predicted else ""
    where = f" on {replica.node}" if replica.node else ""
    return f"{replica.name}{where} ready after {took.total_s:.1f} s: {parts}{expected}"


def _take_down(memory: memories.Memory, seen: Seen, took: statuses.ColdStartParts) -> None:
    measured = memories.mean(memory.measured(), took)
    cold_start = statuses.ColdStartStatus(
        predicted=memories.parts(seen.predicted), measured=measured, last=took
    )
    memory.status = memory.status.model_copy(update={"cold_start": cold_start})
