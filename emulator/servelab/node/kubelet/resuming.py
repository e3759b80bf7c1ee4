"""A pod's life from what the API server still knows, after the emulator was gone.

Its containers ran on: what was due meanwhile has happened, and the first sync tells it. An engine
that served serves again at once, at another dial address; a pod that was going goes.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from modelserve.api import names, timestamps, wire
from modelserve.catalog import images as catalogue
from servelab.node.kubelet import (
    backoffs,
    enginelife,
    engineset,
    life,
    probeworkers,
    restartall,
    runtime,
    state,
)
from servelab.node.pods import podspec, starting
from servelab.node.rules import conditions, records

Kind = podspec.ProbeKind


def begun(pod: podspec.Pod) -> bool:
    """Whether a kubelet has taken the pod on already."""
    return bool((pod.raw.get("status") or {}).get("startTime"))


def known_ip(pod: podspec.Pod) -> str:
    """The address its status shows; empty if none."""
    return str((pod.raw.get("status") or {}).get("podIP", ""))


def began_real_s(pod: podspec.Pod) -> float:
    """When a kubelet took it on, Unix seconds: to the millisecond where stamps tell it.

    They do of the engine's first start; those of a start after a crash are later.
    """
    told_s = timestamps.parse_time((pod.raw.get("status") or {})["startTime"])
    stamps = _stamps(pod)
    first_s = stamps[0].start_ms / 1000 if stamps else told_s
    return first_s if told_s <= first_s < told_s + 1 else told_s


def resume(pod: podspec.Pod, around: state.Surroundings, now_real_s: float) -> life.PodLife:
    """Take a pod on where its status stands. Resume the pods of a node in order of creation."""
    status = pod.raw.get("status") or {}
    containers = runtime.Runtime(pod.uid, around.host.scale)
    found = state.State(pod, around, containers, _engines(pod, around))
    found.faults_seen_s = now_real_s
    found.accepted_s = found.pulls_since_s = began_real_s(pod)
    found.phase = found.told_phase = status.get("phase", "Pending")
    found.reason, found.message = status.get("reason", ""), status.get("message", "")
    found.may_run = found.phase not in state.TERMINAL
    found.ip_known = bool(status.get("podIP"))
    found.resources = {k: status.get(k) for k in ("resources", "allocatedResources")}
    _conditions(found, status)
    entries = [
        entry
        for key in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for entry in status.get(key) or ()
    ]
    for entry in entries:
        found.told[entry["name"]] = dict(entry)
        _restore(found, entry, now_real_s)
    containers.fresh = []  # Their log was lost with the process.
    # As of the last end that was told: what ended since then is news.
    found.cache = found.snapshot = containers.look(max((found.accepted_s, *_ends_s(entries))))
    resumed = life.PodLife(pod, around, found)
    _probes(resumed.worker.probers, found, now_real_s)
    for entry in entries:
        _back_off(resumed.worker.delays.crashes, entry)
    return resumed


def _conditions(found: state.State, status: Mapping[str, Any]) -> None:
    known = {entry["type"]: entry for entry in status.get("conditions") or ()}
    for kind, entry in known.items():
        since = timestamps.parse_time(entry.get("lastTransitionTime") or status["startTime"])
        found.flips.since_s[kind] = (entry["status"], since)
    if conditions.RESIZING in known:
        found.resizing, found.resized = found.pod.generation, True
    found.restarting = found.flips.holds(conditions.RESTARTING)
    ready = known.get("PodReadyToStartContainers", {}).get("status") == "True"
    found.cri.sandbox = found.sandbox = "ready" if ready else "absent"
    if not found.may_run:
        found.cri.sandbox = found.sandbox = "gone"


def _engines(pod: podspec.Pod, around: state.Surroundings) -> dict[str, enginelife.Engine]:
    found = engineset.of_pod(pod, around.host, around.engines)
    stamps = _stamps(pod)
    for engine in found.values():
        if engine.leads:
            engine.cold = starting.ColdStart(engine.cold.start, around.host.scale, stamps)
    return found


def _stamps(pod: podspec.Pod) -> tuple[wire.PhaseStamp, ...]:
    text = pod.annotations.get(names.PHASES)
    try:
        return wire.PhaseStamps.parse(json.loads(text)).stamps if text else ()
    except (ValueError, KeyError, TypeError, AttributeError):
        return ()  # Somebody wrote something else there: the status has to do.


def _restore(found: state.State, entry: Mapping[str, Any], now_real_s: float) -> None:
    """The container's newest run, if it has had one."""
    name, now = entry["name"], entry.get("state") or {}
    said = found.around.behaviors.get(name)
    spec = next((each for each in found.pod.containers if each.name == name), None)
    last = (entry.get("lastState") or {}).get("terminated")
    if said is None or spec is None:
        return
    fallback = spec.raw.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    number, engine = int(entry.get("restartCount", 0)), found.engines.get(name)
    for body, run in ((last, number - 1), (now.get("terminated"), number)):
        if body is not None:
            ended = records.Ended.parse(body)
            taken = restartall.taken(body)
            at = number if body is last and "waiting" in now and not taken else run
            words, since = said.of_run(max(0, at)), ended.started_at_s
            made = found.cri.create(name, max(0, at), since, words, fallback=fallback)
            made.removed = taken
            made.ends_s, made.exit_code = ended.finished_at_s, ended.exit_code
            made.reason, made.message = ended.reason, ended.message
    began = _running_since_s(engine, now, last)
    if began is not None:
        words = said.of_run(number)
        made = found.cri.create(name, number, began, words, fallback=fallback, process=engine)
        made.resources, made.image = entry.get("resources") or {}, _image(spec, entry)
        if engine is not None and found.may_run:
            engine.relaunch(found.out, made, now_real_s, going=found.pod.deleted)


def _image(spec: podspec.Container, entry: Mapping[str, Any]) -> str:
    """As its spec had it when it began: the status has the full name of that."""
    told = str(entry.get("image", ""))
    return spec.image if told in ("", spec.image, catalogue.canonical(spec.image)) else told


def _running_since_s(
    engine: enginelife.Engine | None, now: Mapping[str, Any], last: object
) -> float | None:
    """When the run that goes on began; None if none does.

    An engine's stamps may be ahead of the status, which waits for a relist.
    """
    if "running" in now:
        return timestamps.parse_time(now["running"]["startedAt"])
    if engine is None or "terminated" in now or last is not None:
        return None
    return engine.cold.launched_real_s


def _ends_s(entries: Iterable[Mapping[str, Any]]) -> Iterator[float]:
    for entry in entries:
        for key in ("state", "lastState"):
            ended = (entry.get(key) or {}).get("terminated")
            yield records.Ended.parse(ended).finished_at_s if ended else 0.0


def _back_off(crashes: backoffs.Backoff, entry: Mapping[str, Any]) -> None:
    """Each restart counted as a failure when it began."""
    restarts, now = int(entry.get("restartCount", 0)), entry.get("state") or {}
    last = (entry.get("lastState") or {}).get("terminated") or {}
    run = now.get("running") or now.get("terminated") or last
    if restarts and run.get("startedAt"):
        crashes.resume(entry["name"], restarts, timestamps.parse_time(run["startedAt"]))


def _probes(workers: probeworkers.Workers, found: state.State, now_real_s: float) -> None:
    """What probes had found still counts: a kubelet's restart changes no container's status."""
    if not found.told or not found.may_run:
        return
    workers.add(found.pod, now_real_s)
    for worker in workers.workers:
        entry = found.told.get(worker.spec.name)
        if entry is None or "running" not in (entry.get("state") or {}):
            continue
        started, ready = bool(entry.get("started")), bool(entry.get("ready"))
        known = {Kind.STARTUP: started or None, Kind.READINESS: ready, Kind.LIVENESS: True}
        worker.container_id, worker.known = entry["containerID"], True
        worker.result = known[worker.probe.kind]
        worker.held = worker.probe.kind is Kind.STARTUP and started
        worker.last = worker.result
        # A first period for an engine to come back.
        worker.next_s = now_real_s + worker.probe.period_s
