"""Where and how a recorded pod and an emulated one ran, and how far apart they may be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from servelab.node.checks import recording

# A kubelet's own times jitter by so much (syncs, relists, API writes).
JITTER_S = 1.5
# Each wait of a kubelet's between two tries is drawn between once and one and a half times its
# length; ours is the middle, so a real one is off by up to a fifth of what passed.
WAIT_SHARE = 0.25
WAITS = ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull")


@dataclass(frozen=True, slots=True)
class Difference:
    """What one scenario's pod shows differently; None where a side lacks it."""

    scenario: str
    where: str
    real: Any
    emulated: Any

    def to_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "where": self.where,
            "real": self.real,
            "emulated": self.emulated,
        }


@dataclass(frozen=True, slots=True)
class Place:
    """Where a pod ran, to be masked."""

    namespace: str
    node: str


@dataclass(frozen=True, slots=True)
class Run:
    """The emulated side of a scenario."""

    place: Place
    updates: Sequence[recording.Update]
    events: Sequence[recording.Event]
    logs: Sequence[recording.Log]
    prints: Sequence[recording.Print] = ()


def real_place(scenario: recording.Scenario) -> Place:
    """Where the recorded pod ran."""
    namespace = scenario.pod["metadata"].get("namespace", "default")
    return Place(namespace, scenario.pod["spec"].get("nodeName") or "<none>")


def judged_s(scenario: recording.Scenario) -> float:
    """Until when the emulated side is judged: the recording may have ended any time after that."""
    return scenario.last_s - WAIT_SHARE * _waited_s(scenario, scenario.last_s)


def slack_s(scenario: recording.Scenario, until_s: float) -> float:
    """How far apart two kubelets may be at that time of the scenario."""
    waited = _waited_s(scenario, until_s)
    return JITTER_S + scenario.probe_period_s + WAIT_SHARE * waited


def _waited_s(scenario: recording.Scenario, until_s: float) -> float:
    """Seconds spent in back-offs until then, whether they were told as they began or at the end."""
    waited, before, waits = 0.0, 0.0, False
    for update in scenario.updates:
        if update.t > until_s:
            break
        waited_already, waits = waits, _waits(update)
        if (waits or waited_already) and update.t - before > JITTER_S:
            waited += update.t - before
        before = update.t
    return waited


def _waits(update: recording.Update) -> bool:
    return any(
        entry["state"].get("waiting", {}).get("reason") in WAITS
        for key in recording.LISTS
        for entry in update.status.get(key) or ()
    )
