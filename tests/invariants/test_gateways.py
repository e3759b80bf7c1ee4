"""Invariants 4, 9, 11 and 12: several gateways, what they count, and what becomes of the counts.

Beside the product's code stands the plain truth: a list of open requests and where each one is.
"""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, rule

from modelserve.api import wire
from modelserve.decide import counters, demand, fleet, holding, observation, shares

State = observation.ReplicaState
SLOTS = 4
TERMS = holding.Terms(slots=SLOTS, max_requests=30, max_bytes=400, max_real_s=1e6)
PARAMETERS = observation.Parameters(slots=SLOTS, cold_start_s=10, service_s=1)
GATEWAYS = ("a", "b", "c")


@dataclass
class Gateway:
    machine: holding.Holding = field(default_factory=lambda: holding.Holding(TERMS))
    epoch: int = 0


class Plant(RuleBasedStateMachine):
    """Gateways and pods; ``open`` says where each client's request is: a pod, or held ("")."""

    requests = Bundle("requests")
    pods = Bundle("pods")

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.ids = itertools.count()
        self.open: dict[int, tuple[str, str]] = {}
        self.sizes: dict[int, int] = {}
        self.direct: Counter[str] = Counter()
        self.replicas: dict[str, fleet.Replica] = {}
        self.gateways = {name: Gateway() for name in GATEWAYS}
        self.refused: list[tuple[str, float]] = []
        self.counted = counters.Counters(primed=True)
        self.arrived = self.told_arrivals = 0
        self.share()

    # --- what happens -----------------------------------------------------------------------------

    @rule(target=requests, name=st.sampled_from(GATEWAYS), size=st.integers(1, 40))
    def a_request_comes(self, name: str, size: int) -> int:
        return self.come(name, size)

    def come(self, name: str, size: int) -> int:
        number = next(self.ids)
        self.open[number] = name, ""
        self.sizes[number] = size
        machine = self.gateways[name].machine
        before = machine.arrivals
        self.carry_out(name, machine.arrive(number, size, self.now_s))
        self.arrived += machine.arrivals - before
        return number

    @rule(target=requests, name=st.sampled_from(GATEWAYS), count=st.integers(5, 40))
    def many_come_at_once(self, name: str, count: int) -> object:
        return multiple(*[self.come(name, 8) for _ in range(count)])

    @rule(target=requests, order=st.permutations(GATEWAYS))
    def the_load_moves_from_one_to_the_next(self, order: list[str]) -> object:
        """The operator deals to those that have more, which takes back nothing that is sent."""
        come = []
        for name in order[:2]:
            come += [self.come(name, 8) for _ in range(40)]
            self.share()
        return multiple(*come)

    @rule(number=consumes(requests), cut=st.booleans())
    def it_ends_or_its_client_goes(self, number: int, cut: bool) -> None:
        name, uid = self.open.pop(number, ("", ""))
        if name:
            machine = self.gateways[name].machine
            act = machine.drop if cut or not uid else machine.complete
            self.carry_out(name, act(number, self.now_s))

    @rule(target=pods)
    def a_pod_becomes_ready(self) -> str:
        uid = f"p{next(self.ids)}"
        self.replicas[uid] = fleet.Replica(uid, True, name=uid, address=uid)
        self.watch()
        return uid

    @rule(uid=pods)
    def a_pod_is_told_to_end(self, uid: str) -> None:
        if uid in self.replicas:
            self.replicas[uid] = fleet.Replica(uid, True, True, True, uid, uid)
            self.watch()

    @rule(uid=consumes(pods))
    def a_pod_is_gone_with_its_streams(self, uid: str) -> None:
        if self.replicas.pop(uid, None) is not None:
            self.watch()
            for number, (name, at) in list(self.open.items()):
                if at == uid:
                    del self.open[number]
                    self.carry_out(name, self.gateways[name].machine.drop(number, self.now_s))
            del self.direct[uid]

    @rule(uid=pods, more=st.integers(1, 3))
    def somebody_calls_an_engine_past_the_gateways(self, uid: str, more: int) -> None:
        if uid in self.replicas and not self.replicas[uid].terminating:
            self.direct[uid] += more

    @rule(target=requests, name=st.sampled_from(GATEWAYS), count=st.integers(0, 12))
    def a_gateway_is_killed_and_another_starts(self, name: str, count: int) -> object:
        """Of the new one the operator hears when some requests have come to it."""
        self.open = {k: place for k, place in self.open.items() if place[0] != name}
        self.refused = [each for each in self.refused if each[0] != name]
        self.look()
        machine = holding.Holding(TERMS, share_due_real_s=self.now_s + 3)
        self.gateways[name] = Gateway(machine, self.gateways[name].epoch + 1)
        self.watch()
        come = [self.come(name, 8) for _ in range(count)]
        self.share()
        return multiple(*come)

    @rule()
    def the_operator_starts_anew(self) -> None:
        """What gateways had counted before is no arrival of now."""
        self.counted, told = counters.Counters(), self.told_arrivals
        self.look()
        assert self.told_arrivals == told

    @rule()
    def the_operator_deals_out_the_slots(self) -> None:
        self.share()

    @rule(by_s=st.floats(0.1, 40))
    def time_passes(self, by_s: float) -> None:
        self.now_s += by_s
        self.refused = [each for each in self.refused if math.floor(each[1]) > self.now_s - 30.0]
        for name, gateway in self.gateways.items():
            self.carry_out(name, gateway.machine.advance(self.now_s))

    # --- what must hold ---------------------------------------------------------------------------

    @invariant()
    def no_replica_is_herded(self) -> None:
        """Invariant 4, from the first ready instant on."""
        loads = Counter(uid for _, uid in self.open.values() if uid)
        most = math.ceil(SLOTS * 1.25) + len(GATEWAYS)
        assert all(load <= most for load in loads.values()), loads

    @invariant()
    def the_demand_is_the_open_requests(self) -> None:
        """Invariant 9: whoever sees them, each counts once; those on pods that go, not at all."""
        staying = {uid for uid, each in self.replicas.items() if not each.terminating}
        direct = sum(count for uid, count in self.direct.items() if uid in staying)
        counted = sum(uid in staying or not uid for _, uid in self.open.values())
        assert self.look().total == counted + direct + len(self.refused)

    @invariant()
    def a_failed_scrape_hides_only_what_no_gateway_sees(self) -> None:
        staying = {uid for uid, each in self.replicas.items() if not each.terminating}
        counted = sum(uid in staying or not uid for _, uid in self.open.values())
        assert self.look(scraped=False).total == counted + len(self.refused)

    @invariant()
    def a_flood_is_bounded(self) -> None:
        """Invariant 12: what is held stays within the bounds, in number and in bytes."""
        for name, gateway in self.gateways.items():
            held = [number for number, place in self.open.items() if place == (name, "")]
            assert len(held) == gateway.machine.held <= TERMS.max_requests
            held_bytes = sum(self.sizes[number] for number in held)
            assert held_bytes == gateway.machine.held_bytes <= TERMS.max_bytes

    @invariant()
    def every_arrival_is_told_once(self) -> None:
        self.look()
        assert self.told_arrivals == self.arrived

    def teardown(self) -> None:
        """Invariant 11: all clients go, and a Lease later nothing is left of the demand."""
        for number, (name, _) in list(self.open.items()):
            self.gateways[name].machine.drop(number, self.now_s)
        self.open.clear()
        self.direct.clear()
        self.now_s += 31.0
        assert self.look().total == 0
        assert not any(gateway.machine.in_flight for gateway in self.gateways.values())

    # --- how --------------------------------------------------------------------------------------

    def carry_out(self, name: str, effects: object) -> None:
        assert isinstance(effects, list | tuple)
        for effect in effects:
            if isinstance(effect, holding.Send):
                self.open[effect.request_id] = name, effect.pod_uid
            else:
                del self.open[effect.request_id]
                self.refused.append((name, self.now_s))

    def watch(self) -> None:
        for name, gateway in self.gateways.items():
            self.carry_out(name, gateway.machine.update(TERMS, self.replicas.values(), self.now_s))

    def snapshots(self) -> list[wire.DemandSnapshot]:
        return [
            wire.DemandSnapshot(
                name, str(each.epoch), 0, (each.machine.demand("default", "m", self.now_s),)
            )
            for name, each in self.gateways.items()
        ]

    def share(self) -> None:
        dealt = shares.deal(SLOTS, self.snapshots(), "default", "m")
        for name, share in dealt.items():
            self.carry_out(name, self.gateways[name].machine.set_share(share, self.now_s))

    def look(self, *, scraped: bool = True) -> demand.Demand:
        """As the operator does, everything being fresh."""
        merged, self.counted = counters.merge(self.snapshots(), "default", "m", self.counted)
        self.told_arrivals += merged.signal.arrivals
        loads = Counter(uid for _, uid in self.open.values()) + self.direct
        replicas = tuple(
            observation.Replica(
                uid,
                uid,
                State.TERMINATING if each.terminating else State.READY,
                0.0,
                in_flight=merged.in_flight.get(uid, 0),
                waiting=float(max(0, loads[uid] - SLOTS)) if scraped else None,
                running=float(min(SLOTS, loads[uid])) if scraped else None,
            )
            for uid, each in self.replicas.items()
        )
        seen = observation.Observation(replicas, merged.signal, len(replicas))
        return demand.measure(seen, PARAMETERS, self.now_s)


TestSeveralGateways = Plant.TestCase
