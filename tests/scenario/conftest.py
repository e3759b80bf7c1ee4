"""A small plant in virtual time: one model, its replicas and a gateway under ``scaling.decide``.

Requests are discrete and each takes ``service_s``; a replica works on ``slots`` of them and queues
up to a quarter more; the gateway holds the rest. Ordered replicas are ready after ``cold_start_s``.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from modelserve.decide import observation, record, scaling, state

State = observation.ReplicaState


@dataclass
class Pod:
    uid: str
    created_s: float
    ready_s: float
    running: list[tuple[float, float]] = field(default_factory=list)  # finish, start
    waiting: deque[float] = field(default_factory=deque)
    terminating: bool = False

    @property
    def load(self) -> int:
        return len(self.running) + len(self.waiting)


Distort = Callable[[observation.Observation, float], observation.Observation]


def undistorted(seen: observation.Observation, now_s: float) -> observation.Observation:
    return seen


@dataclass
class Plant:
    """Set it up, ``run`` it, then read what happened."""

    parameters: observation.Parameters
    arrivals_s: Sequence[float] = ()
    service_s: float = 10.0
    cold_start_s: float = 90.0
    step_s: float = 0.5
    gpus: int = 10_000  # replicas that find GPUs
    count: int = 0
    distort: Distort = undistorted
    lazy: bool = False  # decide only on a change, or when the last decision asked for it
    now_s: float = 0.0
    pods: list[Pod] = field(default_factory=list)
    held: deque[float] = field(default_factory=deque)
    memory: state.ScalerState = field(default_factory=state.ScalerState)
    waits_s: list[float] = field(default_factory=list)
    writes: list[tuple[float, int]] = field(default_factory=list)
    decisions: list[record.Decision] = field(default_factory=list)
    pod_s: float = 0.0
    peak: int = 0
    lost: int = 0
    _seen: observation.Observation | None = None
    _next: int = 0
    _made: int = 0
    _arrived: int = 0
    _finished: int = 0
    _service_sum_s: float = 0.0

    def run(self, until_s: float) -> "Plant":
        """Advance to ``until_s``, deciding once a step."""
        while self.now_s < until_s:
            self.now_s = round(self.now_s + self.step_s, 6)
            self._serve()
            if not self.lazy or self._due():
                self.decide()
            self.pod_s += len(self.pods) * self.step_s
        return self

    def away(self, until_s: float) -> None:
        """Advance without anybody who decides."""
        while self.now_s < until_s:
            self.now_s = round(self.now_s + self.step_s, 6)
            self._serve()

    def _due(self) -> bool:
        seen, last = self.distort(self.observe(), self.now_s), self._seen
        again_s = self.decisions[-1].revisit_at_s if self.decisions else None
        return seen != last or (again_s is not None and self.now_s >= again_s)

    def restart_operator(self) -> None:
        """Keep only what the status keeps."""
        saved = state.to_status(
            self.memory, self.now_s, arrival_rate_per_s=0.0, cold_start_s=self.cold_start_s
        )
        self.memory = state.from_status(saved, self.now_s)

    def decide(self) -> record.Decision:
        seen = self.distort(self.observe(), self.now_s)
        decision, self.memory = scaling.decide(seen, self.parameters, self.memory, self.now_s)
        self.decisions.append(decision)
        self._arrived = self._finished = 0
        self._service_sum_s = 0.0
        self._seen = self.distort(self.observe(), self.now_s)
        if decision.changes and not (decision.wants_zero and self._busy()):
            self.writes.append((self.now_s, decision.desired))
            self._scale(decision)
        return decision

    def observe(self) -> observation.Observation:
        placed = [p for p in self.pods if p.terminating][: self.gpus]
        room = self.gpus - len(placed)
        replicas = []
        for pod in self.pods:
            if not pod.terminating:
                room -= 1
            replicas.append(self._replica(pod, placed=pod.terminating or room >= 0))
        signal = observation.GatewaySignal(
            live_gateways=1,
            held=len(self.held),
            arrivals=self._arrived,
            completions=self._finished,
            service_sum_s=self._service_sum_s,
        )
        return observation.Observation(tuple(replicas), signal, self.count)

    def _replica(self, pod: Pod, *, placed: bool) -> observation.Replica:
        ready = self.now_s >= pod.ready_s
        kind = State.READY if ready else State.STARTING if placed else State.UNSCHEDULABLE
        if not placed:
            pod.ready_s = math.inf
        elif math.isinf(pod.ready_s):
            pod.ready_s = self.now_s + self.cold_start_s
        return observation.Replica(
            uid=pod.uid,
            name=pod.uid,
            state=State.TERMINATING if pod.terminating else kind,
            created_s=pod.created_s,
            ready_since_s=pod.ready_s if ready else None,
            in_flight=pod.load,
            waiting=float(len(pod.waiting)) if ready else None,
            running=float(len(pod.running)) if ready else None,
        )

    def _busy(self) -> bool:
        return bool(self.held) or any(pod.load for pod in self.pods if not pod.terminating)

    def _scale(self, decision: record.Decision) -> None:
        self.count = decision.desired
        staying = {p.uid: p for p in self.pods if not p.terminating}
        for _ in range(decision.desired - len(staying)):
            self._made += 1
            ready_s = self.now_s + self.cold_start_s
            self.pods.append(Pod(f"pod-{self._made}", self.now_s, ready_s))
        for uid in decision.victims[: max(0, len(staying) - decision.desired)]:
            staying[uid].terminating = True
        self.peak = max(self.peak, self.count)

    def _serve(self) -> None:
        while self._next < len(self.arrivals_s) and self.arrivals_s[self._next] <= self.now_s:
            self.held.append(self.arrivals_s[self._next])
            self._next += 1
            self._arrived += 1
        for pod in self.pods:
            self._finish(pod)
        ready = [p for p in self.pods if p.ready_s <= self.now_s and not p.terminating]
        cap = math.ceil(self.parameters.slots * 1.25)
        while self.held and ready:
            pod = min(ready, key=lambda p: p.load)
            if pod.load >= cap:
                break
            pod.waiting.append(self.held.popleft())
            self._start(pod)
        self.pods = [p for p in self.pods if not (p.terminating and not p.load)]

    def _finish(self, pod: Pod) -> None:
        done = [job for job in pod.running if job[0] <= self.now_s]
        pod.running = [job for job in pod.running if job[0] > self.now_s]
        self._finished += len(done)
        self._service_sum_s += sum(finish - start for finish, start in done)
        self._start(pod)

    def _start(self, pod: Pod) -> None:
        while pod.waiting and len(pod.running) < self.parameters.slots:
            arrived_s = pod.waiting.popleft()
            self.waits_s.append(self.now_s - arrived_s)
            pod.running.append((self.now_s + self.service_s, self.now_s))

    @property
    def open_requests(self) -> int:
        return len(self.held) + sum(pod.load for pod in self.pods)


@pytest.fixture(scope="session")
def plant() -> type[Plant]:
    """The class itself, so that a test and hypothesis may make as many as they need."""
    return Plant


@pytest.fixture(scope="session")
def parameters() -> observation.Parameters:
    """8 slots, 10 s a request, 90 s of cold start, at most 32 replicas."""
    return observation.Parameters(slots=8, cold_start_s=90, service_s=10, max_replicas=32)
