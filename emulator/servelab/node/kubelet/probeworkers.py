"""The probe workers of a pod: one a probe, ticking from the pod's first sync on.

After kubelet 1.37's pkg/kubelet/prober: a worker acts on the status as last told, sees a new
container by its id, and stops at a failed liveness or a decided startup probe until the next one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servelab.node.kubelet import answering, runtime, state
from servelab.node.pods import podspec
from servelab.node.rules import wording

Kind = podspec.ProbeKind


@dataclass(slots=True)
class Worker:
    """One probe of one container. ``result`` is None while unknown."""

    spec: podspec.Container
    probe: podspec.Probe
    next_s: float
    container_id: str = ""
    result: bool | None = None
    known: bool = False  # whether there is a result, even an unknown one, for this container
    held: bool = False
    last: bool | None = None
    streak: int = 0
    awaited_s: float = 0.0  # how long its answer takes, if that is under way, real
    over: bool = False  # it has seen that the pod is
    ends: bool = False  # with the answer that is under way

    def trigger(self, now_s: float) -> None:
        """Probe now, and at full periods from now on; one that is under way is not cut short."""
        if not self.awaited_s:
            self.next_s = now_s

    def due_s(self, pod: state.State) -> float:
        """When a probe can next change or tell anything: steady servers are left alone."""
        entry = pod.told.get(self.spec.name)
        if self.ends:
            return self.next_s if self.awaited_s else runtime.NEVER
        if pod.phase in state.TERMINAL:
            return runtime.NEVER if self.over else self._on_grid(pod.now_s)
        if entry is None or not entry.get("containerID"):
            return runtime.NEVER
        if entry["containerID"] != self.container_id:
            return self._on_grid(pod.now_s)
        if self.held:
            return runtime.NEVER
        if "running" not in entry["state"]:
            # What has ended fails its probes, once.
            return runtime.NEVER if self.result is False else self._on_grid(pod.now_s)
        if entry["started"] is (self.probe.kind is Kind.STARTUP):
            return runtime.NEVER
        instance = pod.cri.instances[self.spec.name][0]
        steady = instance.steady(pod.now_s)
        if self.result and self.last and steady and not instance.exited(pod.now_s):
            return self._on_grid(max(pod.now_s, instance.ends_s))
        return self._on_grid(pod.now_s)

    def _on_grid(self, from_s: float) -> float:
        """Its first tick that is not before that time."""
        if self.next_s >= from_s or from_s == runtime.NEVER:
            return max(self.next_s, from_s)
        ticks = math.ceil((from_s - self.next_s) / self.probe.period_s)
        return self.next_s + ticks * self.probe.period_s

    def tick(self, pod: state.State, now_s: float) -> bool:
        """Probe if it is due; returns whether the result that counts changed."""
        self.next_s = now_s + self.probe.period_s
        self.over = pod.phase in state.TERMINAL
        entry = pod.told.get(self.spec.name)
        if self.over or entry is None or not entry.get("containerID"):
            return False
        news = False
        if entry["containerID"] != self.container_id:
            # What was asked of the one before says nothing of this one.
            self.container_id, self.held, self.awaited_s = entry["containerID"], False, 0.0
            first = {Kind.STARTUP: None, Kind.READINESS: False, Kind.LIVENESS: True}
            news = self._set(first[self.probe.kind], fresh=True)
        if self.held:
            return news
        if "running" not in entry["state"]:
            return self._set(False) or news
        if entry["started"] is (self.probe.kind is Kind.STARTUP):
            return news
        return self._probe(pod, now_s) or news

    def _probe(self, pod: state.State, now_s: float) -> bool:
        instance = pod.cri.instances[self.spec.name][0]
        # The status has the start in whole seconds.
        if int(now_s - math.floor(instance.started_s)) < self.probe.initial_delay_s:
            return False
        if self._is_under_way(instance, now_s):
            return False
        broken = answering.unmade(instance, self.probe, now_s)
        if broken:
            text = wording.probe_errored(self.probe.kind, broken)
            pod.emit(self.spec, "Unhealthy", text, kind="Warning")
            return False
        why = answering.failing(pod, instance, self.probe, now_s)
        ok = why is None
        if why is not None:
            text = wording.probe_failed(self.probe.kind, why)
            pod.emit(self.spec, "Unhealthy", text, kind="Warning")
        self.streak = self.streak + 1 if ok is self.last else 1
        self.last = ok
        if self.streak < (self.probe.success_threshold if ok else self.probe.failure_threshold):
            return False
        changed = self._set(ok)
        if self.probe.kind is Kind.STARTUP or (self.probe.kind is Kind.LIVENESS and not ok):
            self.held, self.streak = True, 0
        return changed

    def _is_under_way(self, instance: runtime.Instance, now_s: float) -> bool:
        """Whether the answer is still to come; then with the next tick it is there."""
        if self.awaited_s:
            rest_s = max(0.0, self.probe.period_s - self.awaited_s)
            self.awaited_s, self.next_s = 0.0, now_s + rest_s
        elif took_s := answering.took_s(self.probe, instance, now_s):
            self.awaited_s, self.next_s = took_s, now_s + took_s
        return self.awaited_s > 0

    def _set(self, result: bool | None, *, fresh: bool = False) -> bool:
        changed = fresh or not self.known or result is not self.result
        self.result, self.known = result, True
        return changed


@dataclass(slots=True)
class Workers:
    """All of a pod's."""

    workers: list[Worker] = field(default_factory=list)

    def add(self, pod: podspec.Pod, now_s: float) -> None:
        """Begin, if it is not done: their first tick is now, when there is nothing to probe yet."""
        if not self.workers:
            self.workers = [
                Worker(spec, probe, now_s) for spec in pod.containers for probe in spec.probes
            ]

    def stop_killing(self) -> None:
        """As a pod ends, no probe kills a container any more; a kubelet forgets its sidecars.

        One that waits for its answer tells it yet.
        """
        for each in self.workers:
            each.ends = not each.spec.init and each.probe.kind is not Kind.READINESS
        self.workers = [each for each in self.workers if not each.ends or each.awaited_s]

    def clear(self) -> None:
        """End all."""
        self.workers = []

    def due_s(self, pod: state.State) -> float:
        """When the next probe is due."""
        return min((each.due_s(pod) for each in self.workers), default=runtime.NEVER)

    def find(self, name: str, kind: Kind) -> Worker | None:
        known = (each for each in self.workers if not each.over)
        found = (w for w in known if w.spec.name == name and w.probe.kind is kind)
        return next(found, None)

    def failed(self, name: str, container_id: str, kind: Kind) -> bool:
        """Whether that probe says that this container is to be killed."""
        found = self.find(name, kind)
        return found is not None and found.container_id == container_id and found.result is False

    def passed_startup(self, spec: podspec.Container, container_id: str) -> bool | None:
        """Whether this container has started by its probe; None if it has not been probed."""
        found = self.find(spec.name, Kind.STARTUP)
        if found is None:
            return True
        if found.container_id != container_id or not found.known:
            return None
        return found.result is True

    def judge(
        self, pod: state.State, snapshot: runtime.Snapshot, now_s: float
    ) -> dict[str, tuple[bool, bool]]:
        """Started and ready by container; a readiness that is not known yet is probed at once."""
        return {
            spec.name: self._judge(spec, snapshot, pod.told.get(spec.name) or {}, now_s)
            for spec in pod.pod.containers
        }

    def _judge(
        self,
        spec: podspec.Container,
        snapshot: runtime.Snapshot,
        told: Mapping[str, Any],
        now_s: float,
    ) -> tuple[bool, bool]:
        seen = snapshot.newest(spec.name)
        if seen is None or not seen.running:
            return False, False
        started = self.passed_startup(spec, seen.instance.container_id)
        if started is None:
            # Until it is probed, it is as was told of the run before, where no end was told.
            started = told.get("started") is True
        if not started:
            return False, False
        found = self.find(spec.name, Kind.READINESS)
        if found is None:
            return True, True
        if found.container_id == seen.instance.container_id and found.result:
            return True, True
        found.trigger(now_s)
        return True, False
