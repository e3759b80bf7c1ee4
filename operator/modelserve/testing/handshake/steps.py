"""Every next step of the hand-shake's world, with the product's own code for all decisions.

All orders in which messages arrive, requests come and end, pods drain and a party crashes can be
gone through. Time moves by seconds, when nothing else is left to happen or, a few times, before.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from modelserve.api import wire
from modelserve.decide import (
    counters,
    observation,
    scaling,
    settle,
    state,
    traffic,
    windows,
)
from modelserve.testing.handshake import world as worlds
from modelserve.testing.handshake.world import ANSWERED, HELD, LOST, RUNNING, SENT, Pod, World

State = observation.ReplicaState
LONGEST_S = 60.0  # no order of events takes so long
NOW = observation.Parameters(
    slots=2, cold_start_s=1, service_s=1, cooldown_s=0, down=windows.Direction(0.0), snapshot_s=0.01
)
QUIET = state.ScalerState(
    known=traffic.Traffic(last_active_s=-1e4),
    live_count=1,
    recommendations=(windows.Recommended(-1e4, 0),),
)


def following(world: World) -> Iterator[tuple[str, World]]:
    """Every next step, named, with what comes of it."""
    assert world.now_s < LONGEST_S, "time passes and nothing comes of it"
    if world.calm and world.replicas and not world.settling.busy and not world.mail:
        assert not worlds.barred(world), "a fence stays that nobody wants"
    found = [*_gateways(world), *_requests(world), *_pods(world), *_mail(world), *_operator(world)]
    yield from found
    if world.arrivals:
        for number in range(len(world.gateways)):
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
        if gateway.known != world.pods:
            machine = worlds.work_on(world, number)
            effects = machine.update(worlds.TERMS, worlds.routed(world.pods), world.now_s)
            seen = worlds.settled(world, number, machine, effects)
            yield f"watch {number}", worlds.placed(seen, number, known=world.pods)
        if gateway.told != (told := worlds.tell(worlds.look_at(gateway.machine))):
            yield f"snapshot {number}", worlds.placed(world, number, told=told)


def _requests(world: World) -> Iterator[tuple[str, World]]:
    pods = {pod.uid: pod for pod in world.pods}
    for place, (number, uid, what) in enumerate(world.requests):
        if what == SENT and uid in pods and not pods[uid].gone:
            yield f"reach {place}", worlds.marked(world, place, uid, RUNNING)
        elif what == SENT:
            machine = worlds.work_on(world, number)
            effects = machine.bounce(place, world.now_s, reached=False)
            held = worlds.marked(world, place, "", HELD)
            yield f"bounce {place}", worlds.settled(held, number, machine, effects)
        elif what == RUNNING:
            machine = worlds.work_on(world, number)
            effects = machine.complete(place, world.now_s)
            ended = worlds.marked(world, place, uid, ANSWERED)
            yield f"finish {place}", worlds.settled(ended, number, machine, effects)


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
                machine = worlds.work_on(world, number)
                granted = machine.fence(fence_id, uids, world.now_s).granted
                said = rest._replace(mail=rest.mail | {("answer", number, fence_id, granted)})
                if granted:
                    assert not worlds.kept(world, number, uids), "granted with requests there"
                    said = worlds.placed(said, number, granted_s=world.now_s)
                yield f"ask {number} {granted}", worlds.settled(said, number, machine, ())
            case ("answer", int(number), fence_id, granted):
                mine = world.settling.phase is settle.Phase.ASKED
                if mine and world.settling.fence_id == fence_id:
                    rest = rest._replace(answers=world.answers | {(number, granted)})
                    rest = conclude(rest)
                yield f"answer {number}", rest
            case ("unfence", int(number), fence_id):
                machine = worlds.work_on(world, number)
                effects = machine.unfence(fence_id, world.now_s)
                yield f"unfence {number}", worlds.settled(rest, number, machine, effects)
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
        settling, acts = settle.begin(
            world.settling, worlds.staying(world), f"f{number}", world.now_s
        )
        if acts:
            yield "begin", act(world._replace(fences=number), settling, acts)


def wakes(world: World) -> bool:
    """Whether anybody waits for time to pass."""
    fenced = any(worlds.look_at(g.machine).next_wake() is not None for g in world.gateways)
    retry_s = world.settling.retry_real_s
    return fenced or world.settling.busy or (retry_s is not None and retry_s > world.now_s)


# --- what comes of it -----------------------------------------------------------------------------


def arrive(world: World, number: int) -> World:
    machine = worlds.work_on(world, number)
    place = len(world.requests)
    effects = machine.arrive(place, 1, world.now_s)
    come = (*world.requests, (number, "", HELD))
    less = world._replace(arrivals=world.arrivals - 1, requests=come)
    return worlds.settled(less, number, machine, effects)


def crash(world: World, number: int) -> World:
    """All its clients see their connection go; it starts anew and lists the pods."""
    lost = tuple(
        (at, uid, LOST if at == number and what != ANSWERED else what)
        for at, uid, what in world.requests
    )
    before = world.gateways[number]
    share = worlds.look_at(before.machine).share
    again = worlds.fresh(world.pods, share, before.epoch + 1)
    return worlds.with_gateway(world._replace(requests=lost), number, again)


def tick(world: World) -> World:
    now_s = world.now_s + 1.0
    world = world._replace(now_s=now_s)
    for number in range(len(world.gateways)):
        machine = worlds.work_on(world, number)
        world = worlds.settled(world, number, machine, machine.advance(now_s))
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
    result = settle.answered(world.settling, granted, worlds.staying(world), wanted, world.now_s)
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
