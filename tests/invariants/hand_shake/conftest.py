"""A model of operator, gateways, API server and pods, with the product's own code in it.

That is the hand-shake (``settle``), the gateways' holding, the decision. All orders in which
messages arrive, requests come and end, pods drain and a party crashes can be gone through. Time
moves by seconds, when nothing else is left to happen or, a few times, before that.
"""

import math
import pickle
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

from modelserve.api import wire
from modelserve.decide import (
    counters,
    fleet,
    holding,
    observation,
    scaling,
    settle,
    shares,
    state,
    windows,
)

State = observation.ReplicaState
NOW = observation.Parameters(
    slots=2, cold_start_s=1, service_s=1, cooldown_s=0, down=windows.Direction(0.0), snapshot_s=0.01
)
QUIET = state.ScalerState(
    last_active_s=-1e4, live_count=1, recommendations=(windows.Recommended(-1e4, 0),)
)
TERMS = holding.Terms(slots=2)
LONGEST_S = 60.0  # no order of events takes so long
SENT, RUNNING, HELD, ANSWERED, LOST = "sent", "running", "held", "answered", "lost"
Message = tuple[Any, ...]
Told = tuple[int, tuple[tuple[str, int], ...]]  # held, and in flight by pod


class Pod(NamedTuple):
    """``ready`` takes requests; ``going`` was told to end; ``gone`` refuses connections."""

    uid: str
    ready: bool = True
    going: bool = False
    gone: bool = False


class Gateway(NamedTuple):
    """Its state machine, the pods as it knows them, and what it told last, each as it can lag."""

    machine: bytes
    known: tuple[Pod, ...]
    told: Told
    epoch: int = 0
    granted_s: float = -math.inf


class World(NamedTuple):
    """Everything at one moment."""

    now_s: float
    gateways: tuple[Gateway, ...]
    pods: tuple[Pod, ...]
    replicas: int = 1
    requests: tuple[tuple[int, str, str], ...] = ()  # gateway, pod, what of it
    mail: frozenset[Message] = frozenset()
    settling: settle.Settle = settle.Settle()
    answers: frozenset[tuple[int, bool]] = frozenset()
    fences: int = 0
    operator: bool = True
    arrivals: int = 0  # that may still come
    mishaps: int = 0  # crashes and lost writes that may still happen
    hurry: int = 0  # seconds that may pass although something else could happen
    calm: bool = True  # nobody has crashed, and nothing came late


def begin(gateways: int, arrivals: int, mishaps: int, hurry: int) -> World:
    pods = (Pod("p1"),)
    each = [fresh(pods, number, gateways) for number in range(gateways)]
    return World(0.0, tuple(each), pods, arrivals=arrivals, mishaps=mishaps, hurry=hurry)


def fresh(pods: tuple[Pod, ...], number: int, gateways: int, epoch: int = 0) -> Gateway:
    machine = holding.Holding(TERMS)
    split = shares.split(TERMS.slots, {str(each): 1.0 for each in range(gateways)})
    machine.set_share(split[str(number)], 0.0)
    machine.update(TERMS, routed(pods), 0.0)
    return Gateway(pickle.dumps(machine), pods, tell(machine), epoch)


def routed(pods: tuple[Pod, ...]) -> list[fleet.Replica]:
    return [fleet.Replica(p.uid, p.ready, p.going, p.going, p.uid, p.uid) for p in pods]


def tell(machine: holding.Holding) -> Told:
    return machine.held, tuple(machine.demand("default", "m", 0.0).in_flight.items())


# --- what may happen next -------------------------------------------------------------------------


def following(world: World) -> Iterator[tuple[str, World]]:
    """Every next step, named, with what comes of it."""
    assert world.now_s < LONGEST_S, "time passes and nothing comes of it"
    if world.calm and world.replicas and not world.settling.busy and not world.mail:
        assert not barred(world), "a fence stays that nobody wants"
    found = [*_gateways(world), *_requests(world), *_pods(world), *_mail(world), *_operator(world)]
    yield from found
    if world.arrivals:
        # Gateways are alike: the first request may as well come to the first of them.
        for number in range(min(len(world.gateways), len(world.requests) + 1)):
            yield f"arrive {number}", arrive(world, number)
    if world.mishaps:
        less = world._replace(mishaps=world.mishaps - 1, calm=False)
        if world.operator:
            dead = less._replace(operator=False, settling=settle.Settle(), answers=frozenset())
            yield "operator crashes", dead
        for number in range(len(world.gateways)):
            yield f"gateway {number} crashes", crash(less, number)
    if not found and wakes(world):
        yield "time passes", tick(world)
    elif found and world.hurry:
        yield "time hurries", tick(world._replace(hurry=world.hurry - 1, calm=False))


def _gateways(world: World) -> Iterator[tuple[str, World]]:
    for number, gateway in enumerate(world.gateways):
        machine = pickle.loads(gateway.machine)
        if gateway.known != world.pods:
            effects = machine.update(TERMS, routed(world.pods), world.now_s)
            seen = settled(world, number, machine, effects)
            yield f"watch {number}", placed(seen, number, known=world.pods)
        if gateway.told != (told := tell(machine)):
            yield f"snapshot {number}", placed(world, number, told=told)


def _requests(world: World) -> Iterator[tuple[str, World]]:
    pods = {pod.uid: pod for pod in world.pods}
    for place, (number, uid, what) in enumerate(world.requests):
        machine = pickle.loads(world.gateways[number].machine)
        if what == SENT and uid in pods and not pods[uid].gone:
            yield f"reach {place}", marked(world, place, uid, RUNNING)
        elif what == SENT:
            effects = machine.bounce(place, world.now_s, reached=False)
            held = marked(world, place, "", HELD)
            yield f"bounce {place}", settled(held, number, machine, effects)
        elif what == RUNNING:
            effects = machine.complete(place, world.now_s)
            yield (
                f"finish {place}",
                settled(marked(world, place, uid, ANSWERED), number, machine, effects),
            )


def _pods(world: World) -> Iterator[tuple[str, World]]:
    busy = {uid for _, uid, what in world.requests if what == RUNNING}
    for place, pod in enumerate(world.pods):
        others = (world.pods[:place], world.pods[place + 1 :])
        if not pod.ready and not pod.going:
            ready = (*others[0], pod._replace(ready=True), *others[1])
            yield f"ready {pod.uid}", world._replace(pods=ready)
        if pod.going and pod.uid not in busy:
            yield f"drained {pod.uid}", world._replace(pods=(*others[0], *others[1]))


def _mail(world: World) -> Iterator[tuple[str, World]]:
    for message in sorted(world.mail, key=repr):
        rest = world._replace(mail=world.mail - {message})
        match message:
            case ("ask", int(number), epoch, fence_id, uids):
                if world.gateways[number].epoch != epoch:
                    yield "asked a dead one", rest
                    continue
                machine = pickle.loads(world.gateways[number].machine)
                granted = machine.fence(fence_id, uids, world.now_s).granted
                said = rest._replace(mail=rest.mail | {("answer", number, fence_id, granted)})
                if granted:
                    assert not kept(world, number, uids), "granted with requests there"
                    said = placed(said, number, granted_s=world.now_s)
                yield f"ask {number} {granted}", settled(said, number, machine, ())
            case ("answer", int(number), fence_id, granted):
                mine = world.settling.phase is settle.Phase.ASKED
                if mine and world.settling.fence_id == fence_id:
                    rest = rest._replace(answers=world.answers | {(number, granted)})
                    rest = conclude(rest)
                yield f"answer {number}", rest
            case ("unfence", int(number), fence_id):
                machine = pickle.loads(world.gateways[number].machine)
                effects = machine.unfence(fence_id, world.now_s)
                yield f"unfence {number}", settled(rest, number, machine, effects)
            case ("write", until_s):
                failed, unknown = settle.Outcome.FAILED, settle.Outcome.UNKNOWN
                if world.now_s > until_s:
                    yield "write comes too late", wrote(rest, unknown)
                    continue
                yield "write lands", wrote(zero(rest), settle.Outcome.DONE)
                if world.mishaps:
                    rest = rest._replace(mishaps=world.mishaps - 1)
                    yield "write is lost", wrote(rest, unknown)
                    yield "write lands, its answer is lost", wrote(zero(rest), unknown)
                    yield "write is refused", wrote(rest, failed)
            case _:
                yield "read", act(rest, *settle.read(world.settling, world.replicas, world.now_s))


def _operator(world: World) -> Iterator[tuple[str, World]]:
    if not world.operator:
        # By the time its Lease has lapsed, the dead one's write is over.
        if not any(message[0] == "write" for message in world.mail):
            yield "operator starts", world._replace(operator=True)
        return
    if world.settling.busy:
        late = world.now_s >= world.settling.asked_real_s + wire.FENCE_ANSWER_REAL_S
        if world.settling.phase is settle.Phase.ASKED and late:
            yield "no answer", conclude(world, timed_out=True)
        return
    decision = decided(world)
    if decision.desired > world.replicas:
        made = Pod(f"p{world.fences + 2}", ready=False)
        yield "wake", world._replace(replicas=1, pods=(*world.pods, made), fences=world.fences + 1)
    elif decision.wants_zero:
        number = world.fences + 1
        settling, acts = settle.begin(world.settling, staying(world), f"f{number}", world.now_s)
        if acts:
            yield "begin", act(world._replace(fences=number), settling, acts)


def wakes(world: World) -> bool:
    """Whether anybody waits for time to pass."""
    fenced = any(pickle.loads(g.machine).next_wake() is not None for g in world.gateways)
    retry_s = world.settling.retry_real_s
    return fenced or world.settling.busy or (retry_s is not None and retry_s > world.now_s)


# --- what comes of it -----------------------------------------------------------------------------


def arrive(world: World, number: int) -> World:
    machine = pickle.loads(world.gateways[number].machine)
    place = len(world.requests)
    effects = machine.arrive(place, 1, world.now_s)
    come = (*world.requests, (number, "", HELD))
    less = world._replace(arrivals=world.arrivals - 1, requests=come)
    return settled(less, number, machine, effects)


def crash(world: World, number: int) -> World:
    """All its clients see their connection go; it starts anew and lists the pods."""
    lost = tuple(
        (at, uid, LOST if at == number and what != ANSWERED else what)
        for at, uid, what in world.requests
    )
    again = fresh(world.pods, number, len(world.gateways), world.gateways[number].epoch + 1)
    return with_gateway(world._replace(requests=lost), number, again)


def tick(world: World) -> World:
    now_s = world.now_s + 1.0
    world = world._replace(now_s=now_s)
    for number, gateway in enumerate(world.gateways):
        machine = pickle.loads(gateway.machine)
        world = settled(world, number, machine, machine.advance(now_s))
    return world


def wrote(world: World, outcome: settle.Outcome) -> World:
    return act(world, *settle.wrote(world.settling, outcome, world.now_s))


def zero(world: World) -> World:
    """The write lands: every pod there is goes."""
    going = tuple(pod._replace(going=True, ready=False) for pod in world.pods)
    return world._replace(replicas=0, pods=going)


def conclude(world: World, *, timed_out: bool = False) -> World:
    """All have answered, or the second is over: go on with the hand-shake."""
    if len(world.answers) < len(world.gateways) and not timed_out:
        return world
    granted = not timed_out and all(said for _, said in world.answers)
    wanted = decided(world).wants_zero
    result = settle.answered(world.settling, granted, staying(world), wanted, world.now_s)
    return act(world._replace(answers=frozenset()), *result)


def act(world: World, settling: settle.Settle, acts: tuple[settle.Act, ...]) -> World:
    mail = set(world.mail)
    for each in acts:
        match each:
            case settle.AskFence(fence_id, uids):
                mail |= {
                    ("ask", number, gateway.epoch, fence_id, uids)
                    for number, gateway in enumerate(world.gateways)
                }
            case settle.Unfence(fence_id):
                mail |= {("unfence", number, fence_id) for number in range(len(world.gateways))}
            case settle.WriteZero(_, until_s):
                assert decided(world).wants_zero, "zero is written although it is not wanted"
                mail.add(("write", until_s))
            case settle.ReadCount():
                mail.add(("read",))
    return world._replace(mail=frozenset(mail), settling=settling)


def decided(world: World) -> Any:
    """The product's decision from what the gateways told last."""
    snapshots = [
        wire.DemandSnapshot(
            str(number),
            str(gateway.epoch),
            0,
            (wire.ModelDemand("default", "m", gateway.told[0], in_flight=dict(gateway.told[1])),),
        )
        for number, gateway in enumerate(world.gateways)
    ]
    merged, _ = counters.merge(snapshots, "default", "m", counters.Counters())
    running = Counter(uid for _, uid, what in world.requests if what == RUNNING)
    replicas = tuple(
        observation.Replica(
            pod.uid,
            pod.uid,
            State.TERMINATING if pod.going else State.READY if pod.ready else State.STARTING,
            0.0,
            in_flight=merged.in_flight.get(pod.uid, 0),
            waiting=0.0 if pod.ready else None,
            running=float(running[pod.uid]) if pod.ready else None,
        )
        for pod in world.pods
    )
    seen = observation.Observation(replicas, merged.signal, world.replicas, world.replicas)
    past = QUIET._replace(live_count=world.replicas)
    return scaling.decide(seen, NOW, past, world.now_s)[0]


def staying(world: World) -> list[str]:
    return [pod.uid for pod in world.pods if not pod.going]


def settled(world: World, number: int, machine: holding.Holding, effects: Any) -> World:
    """Keep the machine and carry out its effects. Nothing is sent to a pod on its way out, but by
    a gateway that started after the question, or one whose watch lags by a whole fence."""
    gateway = world.gateways[number]
    lapsed = world.now_s >= gateway.granted_s + wire.FENCE_LAPSE_REAL_S > -math.inf
    for effect in effects:
        assert isinstance(effect, holding.Send), effect
        going = effect.pod_uid not in staying(world)
        assert not going or gateway.epoch or lapsed, f"sent to {effect.pod_uid}, which goes"
        world = marked(world, effect.request_id, effect.pod_uid, SENT)
    return placed(world, number, machine=pickle.dumps(machine))


def barred(world: World) -> set[str]:
    """Pods that stay, and to which some gateway has promised to send nothing."""
    machines = [pickle.loads(gateway.machine) for gateway in world.gateways]
    return {uid for each in machines for uid in each._fences.barred()} & set(staying(world))


def kept(world: World, number: int, uids: tuple[str, ...]) -> bool:
    """Whether the gateway holds a request, or has one at these pods and they are not going."""
    there = {uid for uid in uids if uid in staying(world)}
    mine = [(uid, what) for at, uid, what in world.requests if at == number]
    return any(what == HELD or (what in (SENT, RUNNING) and uid in there) for uid, what in mine)


def marked(world: World, place: int, uid: str, what: str) -> World:
    changed = (world.requests[place][0], uid, what)
    requests = (*world.requests[:place], changed, *world.requests[place + 1 :])
    return world._replace(requests=requests)


def placed(world: World, number: int, **changes: Any) -> World:
    return with_gateway(world, number, world.gateways[number]._replace(**changes))


def with_gateway(world: World, number: int, gateway: Gateway) -> World:
    others = world.gateways
    return world._replace(gateways=(*others[:number], gateway, *others[number + 1 :]))


def unserved(world: World) -> list[tuple[int, str, str]]:
    """Requests without an answer whose gateway lived."""
    return [each for each in world.requests if each[2] not in (ANSWERED, LOST)]


def at_rest(world: World) -> bool:
    """No fence, nothing held, no hand-shake, and no replica."""
    machines = [pickle.loads(gateway.machine) for gateway in world.gateways]
    quiet = not any(each.held or each.next_wake() for each in machines)
    return quiet and not world.settling.busy and world.replicas == 0


@pytest.fixture(scope="session")
def model() -> Any:
    """What begins, what may follow, and what an end is judged by."""
    return SimpleNamespace(begin=begin, following=following, unserved=unserved, at_rest=at_rest)
