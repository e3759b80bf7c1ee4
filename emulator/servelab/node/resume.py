"""A pod's life from what the API server still knows, after the emulator was gone.

A real kubelet's containers outlive it. So here: what was due meanwhile has happened, an engine that
served serves again at once (at another dial address), and a pod that was going goes.
"""

import json
from collections.abc import Mapping
from typing import Any

from modelserve.api import names, timestamps, wire
from servelab.node import containers, engines, podspec, records, starting
from servelab.node.context import Context, Host, Stage, State
from servelab.node.stages import PodLife
from servelab.timing import transfers


def begun(pod: podspec.Pod) -> bool:
    """Whether a kubelet has taken the pod on already."""
    return bool((pod.raw.get("status") or {}).get("startTime"))


def known_ip(pod: podspec.Pod) -> str:
    """The address its status shows; empty if none."""
    return str((pod.raw.get("status") or {}).get("podIP", ""))


def life(
    pod: podspec.Pod,
    host: Host,
    pod_ip: str,
    works: Mapping[str, transfers.Work],
    engine: starting.EngineStart | None,
    now_real_s: float,
) -> PodLife:
    """Take a pod on where its status stands. Resume the pods of a node in order of creation."""
    status = pod.raw.get("status") or {}
    state = _state(pod, status, engine, host.scale, now_real_s)
    resumed = PodLife(pod, host, pod_ip, works, engine, state)
    if state.stage is Stage.LIVE:
        _go_on(resumed.context, now_real_s)
        # While nobody renewed the Lease, the node controller may have set the pod unready.
        resumed.context.write(now_real_s)
    return resumed


def began_real_s(pod: podspec.Pod) -> float:
    """When its first phase began, Unix seconds: to the millisecond where stamps tell it."""
    stamps = _stamps(pod)
    if stamps:
        return stamps[0].start_ms / 1000
    return timestamps.parse_time((pod.raw.get("status") or {})["startTime"])


def _stamps(pod: podspec.Pod) -> tuple[wire.PhaseStamp, ...]:
    text = pod.annotations.get(names.PHASES)
    try:
        return wire.PhaseStamps.parse(json.loads(text)).stamps if text else ()
    except (ValueError, KeyError, TypeError):
        return ()  # Somebody wrote something else there: the status has to do.


def _state(
    pod: podspec.Pod,
    status: Mapping[str, Any],
    engine: starting.EngineStart | None,
    scale: float,
    now_real_s: float,
) -> State:
    listed = {
        entry["name"]: entry
        for key in ("initContainerStatuses", "containerStatuses")
        for entry in status.get(key) or ()
    }
    state = State([_record(spec, listed.get(spec.name), now_real_s) for spec in pod.containers])
    state.accepted_real_s = began_real_s(pod)
    found = {entry["type"]: entry for entry in status.get("conditions") or ()}
    for kind, entry in found.items():
        since = timestamps.parse_time(entry.get("lastTransitionTime") or status["startTime"])
        state.flips.since_s[kind] = (entry["status"], since)
    sandbox = found.get("PodReadyToStartContainers", {}).get("status") == "True"
    state.sandbox = "ready" if sandbox else "absent"
    over = status.get("phase") in ("Succeeded", "Failed")
    state.stage = Stage.OVER if over else Stage.LIVE if sandbox else Stage.SANDBOX
    if over:
        state.sandbox = "gone"
    if engine is not None:
        state.cold = starting.ColdStart(engine, scale, _stamps(pod))
    return state


def _record(
    spec: podspec.Container, status: Mapping[str, Any] | None, now_real_s: float
) -> records.Record:
    record = records.Record(spec)
    if status is None:
        return record
    known = status.get("state") or {}
    last = (status.get("lastState") or {}).get("terminated")
    record.last = records.Ended.parse(last) if last else None
    record.restarts = record.crashes = int(status.get("restartCount", 0))
    record.container_id = status.get("containerID", "")
    if "running" in known:
        record.resume(timestamps.parse_time(known["running"]["startedAt"]), status, now_real_s)
    elif "terminated" in known:
        record.ended = records.Ended.parse(known["terminated"])
        record.started_at_s = record.ended.started_at_s
        record.ready = spec.init and record.ended.exit_code == 0
    else:
        waiting = known.get("waiting") or {}
        record.waiting = waiting.get("reason", record.waiting)
        record.waiting_message = waiting.get("message", "")
    return record


def _go_on(ctx: Context, now: float) -> None:
    """Put the pod's timers back: the pull, the next container, the engine's step, the restarts."""
    state = ctx.state
    started = [bool(r.container_id) for r in state.records]
    state.cursor = started.index(False) if False in started else len(started)
    cold, record = state.cold, ctx.engine_record()
    if cold is not None and record is not None and record.running:
        engines.relaunch(ctx, now)
    for record in state.records:
        if record.spec.init and record.ended:
            continue
        if (record.waiting == "CrashLoopBackOff" and not record.running) or record.ended:
            containers.resume_restart(ctx, record, now)
    if state.cursor < len(started):
        begun_at = cold.since_real_s if cold is not None and cold.phase else state.accepted_real_s
        containers.resume_start(ctx, begun_at)
