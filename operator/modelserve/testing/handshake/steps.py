"""Every next step of the hand-shake's world, with the product's own code for all decisions.

All orders in which messages arrive, requests come and end, pods drain and a party crashes can be
gone through. Time moves by seconds, when nothing else is left to happen or, a few times, before.
"""

from collections.abc import Iterator

from modelserve.api import wire
from modelserve.decide import settle
from modelserve.testing.handshake import deciding
from modelserve.testing.handshake import world as worlds
from modelserve.testing.handshake.world import ANSWERED, HELD, LOST, RUNNING, SENT, Pod, World

LONGEST_S = 60.0  # no order of events takes so long


def following(world: World) -> Iterator[tuple[str, World]]:
    """The next steps that must be tried, named, with what comes of them.

    One alone if it comes to the same before or after all others (a persistent set of one).
    """
    sure = next((message for message in sorted(world.mail) if _is_sure(world, message)), None)
    yield from every(world) if sure is None else _deliver(world, sure)


def every(world: World) -> Iterator[tuple[str, World]]:
    """All next steps."""
    assert world.now_s < LONGEST_S, "time passes and nothing comes of it"
    if world.calm and world.replicas and not world.settling.busy and not world.mail:
        assert not worlds.barred(world), "a fence stays that nobody wants"
    found = [*_gateways(world), *_requests(world), *_pods(world), *_mail(world), *_operator(world)]
    yield from found
    for number in sorted(set(world.arriving)):
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


def _is_sure(world: World, message: worlds.Message) -> bool:
    """Whether what comes of a message is the same whatever happens before it is read.

    No fence's id comes twice, and no epoch comes back. An idle gateway grants any fence, and
    nothing is sent there, so when does not matter, while nobody can crash, or give it up, before.
    """
    match message:
        case ("ask", int(number), epoch, fence_id, _):
            if world.gateways[number].epoch != epoch:
                return True
            asked = world.settling.fence_id == fence_id and _asked(world)
            late = asked and world.now_s >= _late_s(world)
            given_up = ("unfence", number, fence_id) in world.mail
            certain = not (world.mishaps or world.hurry or late or given_up)
            return certain and worlds.is_idle(world, number)
        case ("answer", int(number), fence_id, granted):
            if not _asked(world) or world.settling.fence_id != fence_id:
                return True
            return len(world.answers | {(number, granted)}) < len(world.gateways)
        case ("unfence", int(number), fence_id):
            asks = (m for m in world.mail if m[0] == "ask" and m[1] == number and m[3] == fence_id)
            if any(asks):
                return False
            return worlds.is_idle(world, number) or not worlds.is_fenced(world, number, fence_id)
    return False


def _asked(world: World) -> bool:
    return world.settling.phase is settle.Phase.ASKED


def _late_s(world: World) -> float:
    return world.settling.asked_real_s + wire.FENCE_ANSWER_REAL_S


def _gateways(world: World) -> Iterator[tuple[str, World]]:
    for number, gateway in enumerate(world.gateways):
        if gateway.known != world.pods:
            seen = worlds.turn(
                world, number, "update", worlds.TERMS, worlds.routed(world.pods), world.now_s
            )
            yield f"watch {number}", worlds.placed(seen, number, known=world.pods)
        if gateway.told != (told := worlds.tell(worlds.look_at(gateway.machine))):
            yield f"snapshot {number}", worlds.placed(world, number, told=told)


def _requests(world: World) -> Iterator[tuple[str, World]]:
    pods = {pod.uid: pod for pod in world.pods}
    for place, (number, uid, what) in enumerate(world.requests):
        if what == SENT and uid in pods and not pods[uid].gone:
            yield f"reach {place}", worlds.marked(world, place, uid, RUNNING)
        elif what == SENT:
            held = worlds.marked(world, place, "", HELD)
            back = worlds.turn(held, number, "bounce", place, world.now_s, reached=False)
            yield f"bounce {place}", back
        elif what == RUNNING:
            ended = worlds.marked(world, place, uid, ANSWERED)
            yield f"finish {place}", worlds.turn(ended, number, "complete", place, world.now_s)


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
    for message in sorted(world.mail):
        yield from _deliver(world, message)


def _deliver(world: World, message: worlds.Message) -> Iterator[tuple[str, World]]:
    rest = world._replace(mail=world.mail - {message})
    match message:
        case ("ask", int(number), epoch, fence_id, uids):
            if world.gateways[number].epoch != epoch:
                yield "asked a dead one", rest
                return
            machine = world.gateways[number].machine
            after, answer = worlds.turned(machine, "fence", fence_id, uids, world.now_s)
            granted = answer.granted
            said = rest._replace(mail=rest.mail | {("answer", number, fence_id, granted)})
            if granted:
                assert not worlds.kept(world, number, uids), "granted with requests there"
                said = worlds.placed(said, number, granted_s=world.now_s)
            yield f"ask {number} {granted}", worlds.placed(said, number, machine=after)
        case ("answer", int(number), fence_id, granted):
            if _asked(world) and world.settling.fence_id == fence_id:
                rest = rest._replace(answers=world.answers | {(number, granted)})
                rest = conclude(rest)
            yield f"answer {number}", rest
        case ("unfence", int(number), fence_id):
            yield f"unfence {number}", worlds.turn(rest, number, "unfence", fence_id, world.now_s)
        case ("write", until_s):
            yield from _write(world, rest, until_s)
        case _:
            yield "read", act(rest, *settle.read(world.settling, world.replicas, world.now_s))


def _write(world: World, rest: World, until_s: float) -> Iterator[tuple[str, World]]:
    failed, unknown = settle.Outcome.FAILED, settle.Outcome.UNKNOWN
    if world.now_s > until_s:
        yield "write comes too late", wrote(rest, unknown)
        return
    yield "write lands", wrote(zero(rest), settle.Outcome.DONE)
    if world.mishaps:
        rest = rest._replace(mishaps=world.mishaps - 1)
        yield "write is lost", wrote(rest, unknown)
        yield "write lands, its answer is lost", wrote(zero(rest), unknown)
        yield "write is refused", wrote(rest, failed)


def _operator(world: World) -> Iterator[tuple[str, World]]:
    if not world.operator:
        # By the time its Lease has lapsed, the dead one's write is over.
        if not any(message[0] == "write" for message in world.mail):
            yield "operator starts", world._replace(operator=True)
        return
    if world.settling.busy:
        if _asked(world) and world.now_s >= _late_s(world):
            yield "no answer", conclude(world, timed_out=True)
        return
    decision = deciding.decided(world)
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
    place, left = len(world.requests), list(world.arriving)
    left.remove(number)
    come = (*world.requests, (number, "", HELD))
    less = world._replace(arriving=tuple(left), requests=come)
    return worlds.turn(less, number, "arrive", place, 1, world.now_s)


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
        world = worlds.turn(world, number, "advance", now_s)
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
    wanted = deciding.decided(world).wants_zero
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
                assert deciding.decided(world).wants_zero, (
                    "zero is written although it is not wanted"
                )
                mail.add(("write", until_s))
            case settle.ReadCount():
                mail.add(("read",))
    return world._replace(mail=frozenset(mail), settling=settling)
