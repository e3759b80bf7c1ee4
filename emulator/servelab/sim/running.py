"""One run of a scenario under one policy, from the lead-in to the last answer."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from modelserve import errors, ports
from modelserve.api import spec as api
from modelserve.decide import prediction
from servelab.policies import oracle, registry
from servelab.sim import checking, demand, scenario, traffic
from servelab.sim.agenda import Agenda, Turn
from servelab.sim.moves import Moves
from servelab.sim.nodes import Nodes
from servelab.sim.place import Ledger, Place
from servelab.sim.pods import Template
from servelab.sim.pools import Pools
from servelab.sim.requests import Records
from servelab.sim.scalers import Operator, Rival, Scaler, Written
from servelab.sim.service import Service
from servelab.sim.suiting import Wish
from servelab.timing import jitter
from servelab.workload.arrivals import Arrival

# Ours, by the name a command gives them.
OURS: Mapping[str, api.Policy] = {
    "committed": api.Policy.COMMITTED,
    "queue-depth": api.Policy.QUEUE_DEPTH,
}
ORACLE = "oracle"
# A run that is not over this long after its end never will be.
OVERTIME_S = 7200.0
# How often a run looks how far it is, in simulated seconds.
LOOK_EVERY_S = 60.0

Progress = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One model of a run."""

    name: str
    records: Records
    ledger: Ledger
    writes: Sequence[Written]
    decisions: int


@dataclass(frozen=True, slots=True)
class Run:
    """What happened. Times are emulated seconds; traffic starts at 0, the run at ``start_s``."""

    policy: str
    seed: int
    start_s: float
    end_s: float
    gpus: int  # there can be at most
    node_gpu_s: float  # GPU seconds of the nodes that stood
    models: Sequence[ModelRun]


def policies() -> Sequence[str]:
    """Names of the policies there are."""
    return (*OURS, *registry.names(), ORACLE)


def check_policy(name: str) -> None:
    """Raises InputError for a name that no policy has."""
    if name not in OURS and name != ORACLE:
        known = ", ".join(policies())
        try:
            registry.of(name, registry.Sizing(1.0, 1))
        except errors.InputError as error:
            raise errors.InputError(
                f"no policy is called {name!r}; there are {known}, with a number for N"
            ) from error


def run(
    given: scenario.Scenario,
    policy: str,
    lines: traffic.Lines = traffic.open_trace,
    *,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Run it. ``progress`` is called with the share of the traffic that is over (0 to 1).

    Raises InputError for what cannot be run as given.
    """
    check_policy(policy)
    return _Simulation(given, policy, lines, given.seed if seed is None else seed).run(progress)


class _Stream:
    """The open arrivals of one model: the next one is on the agenda, the rest is not read yet."""

    def __init__(self, service: Service, arrivals: Iterator[Arrival], agenda: Agenda) -> None:
        self._service = service
        self._arrivals = arrivals
        self._agenda = agenda
        self._next: Arrival | None = None
        self.last_s = 0.0

    def advance(self) -> None:
        """Put the next one on the agenda."""
        self._next = next(self._arrivals, None)
        if self._next is not None:
            self.last_s = self._next.at_s
            self._agenda.at(self._next.at_s, Turn.ARRIVAL, self._arrive)

    @property
    def over(self) -> bool:
        """Whether all have come."""
        return self._next is None

    def _arrive(self, now_s: float) -> None:
        arrival = self._next
        assert arrival is not None, "only what is there was put on the agenda"
        self.advance()
        self._service.arrive(arrival, None, now_s)


class _Simulation:
    def __init__(
        self, given: scenario.Scenario, policy: str, lines: traffic.Lines, seed: int
    ) -> None:
        self._given, self._policy, self._lines, self._seed = given, policy, lines, seed
        start_s = -_lead_in_s(given)
        self._start_s = start_s
        self._agenda = Agenda(start_s)
        nodes, moves = Nodes(), Moves(self._agenda)
        self._pools = Pools(given.pools, nodes, self._agenda, moves, seed)
        jitter_sigma = given.step_jitter
        place = Place(self._agenda, nodes, self._pools, moves, seed, jitter_sigma, given.gateways)
        self._services = [Service(model, place) for model in given.models]
        _check_pools(given, self._services)
        self._pools.pods, self._pools.freed = self._pods, self._schedule
        self._streams: list[_Stream] = []
        self._scalers: list[Scaler] = []
        self._loops_end_s = 0.0

    def run(self, progress: Progress | None) -> Run:
        for model, service in zip(self._given.models, self._services, strict=True):
            sources = traffic.of(model, self._seed, self._lines)
            stream = _Stream(service, sources.stream, self._agenda)
            stream.advance()
            self._streams.append(stream)
            for begin_s, client in sources.clients:
                self._loops_end_s = max(self._loops_end_s, client.until_s)
                service.begin_loop(client, begin_s)
            scaler = self._scaler(model, service)
            self._scalers.append(scaler)
            if model.initial_replicas:
                service.deployment.scale(model.initial_replicas, (), self._start_s)
            scaler.begin(self._start_s)
        end_s = self._play(progress)
        for service in self._services:
            service.deployment.close(end_s)
        self._pools.close(end_s)
        return Run(
            self._policy,
            self._seed,
            self._start_s,
            end_s,
            self._pools.gpus,
            self._pools.gpu_s,
            [
                ModelRun(s.name, s.records, s.deployment.ledger, tuple(d.writes), d.decisions)
                for s, d in zip(self._services, self._scalers, strict=True)
            ],
        )

    def _pods(self) -> Sequence[ports.Object]:
        return [pod for service in self._services for pod in service.deployment.pods()]

    def _schedule(self, now_s: float) -> None:
        for service in self._services:
            service.deployment.schedule(now_s)

    def _scaler(self, model: scenario.SimulatedModel, service: Service) -> Scaler:
        if self._policy in OURS:
            return Operator(service, OURS[self._policy])
        scaling = model.spec.scaling
        slots = service.assessment.slots
        target = scaling.target_queue_depth or max(1.0, slots * (scaling.target_utilization or 1.0))
        if self._policy == ORACLE:
            return Rival(service, self._oracle(model, service))
        sizing = registry.Sizing(
            target,
            slots,
            scaling.min_replicas,
            scaling.max_replicas,
            scaling.scale_down.stabilization_window_seconds,
            scaling.cooldown_seconds,
            scaling.activation_replicas,
        )
        return Rival(service, registry.of(self._policy, sizing))

    def _oracle(self, model: scenario.SimulatedModel, service: Service) -> oracle.Oracle:
        """It reads the traffic before anybody else does."""
        wanted = demand.needs(model, self._seed, self._lines)
        if wanted is None:
            raise errors.InputError(
                "an oracle cannot know a closed loop: its requests depend on it"
            )
        scaling = model.spec.scaling
        lead_s = service.assessment.cold_start().total_s * (1 + jitter.BOUND)
        return oracle.Oracle(wanted, lead_s, scaling.min_replicas, scaling.max_replicas)

    def _play(self, progress: Progress | None) -> float:
        agenda, tail_s = self._agenda, self._given.tail_seconds
        look_s = -math.inf
        while True:
            next_s = agenda.next_s
            if next_s >= look_s:
                if progress is not None:
                    progress(next_s)
                look_s = next_s + LOOK_EVERY_S
                if all(stream.over for stream in self._streams):
                    last_s = max([self._loops_end_s, *(s.last_s for s in self._streams)])
                    look_s = min(look_s, last_s + tail_s)
                    if next_s >= last_s + tail_s:
                        waiting = any(service.open for service in self._services)
                        if not waiting or next_s > last_s + tail_s + OVERTIME_S:
                            return max(last_s + tail_s, agenda.now_s)
                        look_s = next_s
            agenda.step()


def _check_pools(given: scenario.Scenario, services: Iterable[Service]) -> None:
    """Raises InputError for a model that no pool can take."""
    known: set[Wish] = set()
    for service in services:
        wish = service.deployment.wish
        if wish not in known and not any(wish.suits_pool(pool) for pool in given.pools):
            product = service.assessment.gpu.product_label
            raise errors.InputError(
                checking.no_pool(service.name, wish, product, given.pools).reason
            )
        known.add(wish)


def _lead_in_s(given: scenario.Scenario) -> float:
    """Seconds before the traffic: as asked for, or the longest predicted cold start, rounded up.

    Where nodes have to come, with the time that takes.
    """
    if given.lead_in_seconds is not None:
        return given.lead_in_seconds
    boots_s = [(pool, pool.elastic.boot_seconds) for pool in given.pools if pool.elastic]
    longest_s = 0.0
    for model in given.models:
        assessed = prediction.assess(model.name, model.spec)
        if isinstance(assessed, prediction.Assessment):
            wish = Template(model.name, model.spec, assessed).wish if boots_s else None
            waits_s = (boot_s for pool, boot_s in boots_s if wish and wish.suits_pool(pool))
            took = assessed.cold_start(provisioning_s=max(waits_s, default=0.0))
            longest_s = max(longest_s, took.total_s)
    return math.ceil(longest_s * (1 + jitter.BOUND) / 10) * 10.0
