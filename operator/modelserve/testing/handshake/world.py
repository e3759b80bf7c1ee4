"""The hand-shake's world at one moment: gateways, pods, requests, messages under way.

All of it is immutable and compares by value, so that a moment that came before is known again. The
gateways' machines are the product's own, kept as bytes.
"""

import functools
import itertools
import math
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

from modelserve.api import wire
from modelserve.decide import fleet, holding, settle, shares

TERMS = holding.Terms(slots=2)
SENT, RUNNING, HELD, ANSWERED, LOST = "sent", "running", "held", "answered", "lost"
Message = tuple[Any, ...]
NOBODYS = (-1, "")  # gateway and pod of a request that is over
ADDRESSED = ("ask", "answer", "unfence")  # to or from the gateway whose number comes next
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
    arriving: tuple[int, ...] = ()  # gateways to which requests may still come
    mishaps: int = 0  # crashes and lost writes that may still happen
    hurry: int = 0  # seconds that may pass although something else could happen
    calm: bool = True  # nobody has crashed, and nothing came late


def begin(gateways: int, arrivals: int, mishaps: int, hurry: int) -> list[World]:
    """Every way in which so many requests may be spread over the gateways.

    Which one a request will come to is settled beforehand: so a gateway to which none will come is
    known as one from the start.
    """
    pods = (Pod("p1"),)
    dealt = shares.split(TERMS.slots, {str(number): 1.0 for number in range(gateways)})
    each = tuple(fresh(pods, share) for share in dealt.values())
    spread = itertools.combinations_with_replacement(range(gateways), arrivals)
    worlds = [World(0.0, each, pods, arriving=to, mishaps=mishaps, hurry=hurry) for to in spread]
    return list(dict.fromkeys(canonical(world) for world in worlds))


def fresh(pods: tuple[Pod, ...], share: int | None, epoch: int = 0) -> Gateway:
    machine = holding.Holding(TERMS)
    machine.set_share(share or 1, 0.0)
    machine.update(TERMS, routed(pods), 0.0)
    return Gateway(pickle.dumps(machine), pods, tell(machine), epoch)


def routed(pods: tuple[Pod, ...]) -> tuple[fleet.Replica, ...]:
    return tuple(fleet.Replica(p.uid, p.ready, p.going, p.going, p.uid, p.uid) for p in pods)


def tell(machine: holding.Holding) -> Told:
    return machine.held, tuple(machine.demand("default", "m", 0.0).in_flight.items())


@functools.lru_cache(maxsize=100_000)
def look_at(machine: bytes) -> holding.Holding:
    """A machine to look at only: others look at the same one."""
    found: holding.Holding = pickle.loads(machine)
    return found


@functools.lru_cache(maxsize=100_000)
def turned(machine: bytes, act: str, *given: Any, **more: Any) -> tuple[bytes, Any]:
    """What becomes of a gateway's machine by one of its methods, and what that returns."""
    found: holding.Holding = pickle.loads(machine)
    result = getattr(found, act)(*given, **more)
    return pickle.dumps(found), tuple(result) if isinstance(result, list) else result


def is_idle(world: World, number: int) -> bool:
    """Whether a gateway has no request, and none will come: all it does is grant fences."""
    return number not in world.arriving and all(at != number for at, _, _ in world.requests)


def canonical(world: World) -> World:
    """The same without what makes no difference to anything that may still happen.

    Which gateway is called what; who answered a request, or lost it; what an idle gateway knows.
    """
    if any(what in (ANSWERED, LOST) and at >= 0 for at, _, what in world.requests):
        over = (*NOBODYS, ANSWERED)
        kept = tuple(over if each[2] in (ANSWERED, LOST) else each for each in world.requests)
        world = world._replace(requests=kept)
    gateways = tuple(
        _idle(gateway, world.pods) if is_idle(world, number) else gateway
        for number, gateway in enumerate(world.gateways)
    )
    if gateways != world.gateways:
        world = world._replace(gateways=gateways)
    order = sorted(range(len(gateways)), key=lambda number: _rank(world, number))
    if order == list(range(len(order))):
        return world
    new = {old: number for number, old in enumerate(order)} | {NOBODYS[0]: NOBODYS[0]}
    return world._replace(
        gateways=tuple(world.gateways[old] for old in order),
        requests=tuple((new[at], uid, what) for at, uid, what in world.requests),
        arriving=tuple(sorted(new[at] for at in world.arriving)),
        mail=frozenset((m[0], new[m[1]], *m[2:]) if m[0] in ADDRESSED else m for m in world.mail),
        answers=frozenset((new[at], granted) for at, granted in world.answers),
    )


def _rank(world: World, number: int) -> tuple[Any, ...]:
    mine = [(place, *rest) for place, (at, *rest) in enumerate(world.requests) if at == number]
    mail = sorted((m[0], *m[2:]) for m in world.mail if m[0] in ADDRESSED and m[1] == number)
    said = sorted(granted for at, granted in world.answers if at == number)
    return world.gateways[number], mine, world.arriving.count(number), mail, said


def _idle(gateway: Gateway, pods: tuple[Pod, ...]) -> Gateway:
    """It sends nothing any more, so nothing of it matters but its fences and what it told."""
    machine = _fences_only(gateway.machine)
    return Gateway(machine, pods, gateway.told, gateway.epoch)


@functools.lru_cache(maxsize=100_000)
def _fences_only(machine: bytes) -> bytes:
    found, left = look_at(machine), holding.Holding(TERMS)
    assert found.held + found.in_flight == 0, "an idle gateway has a request"
    left._fences = found._fences
    return pickle.dumps(left)


def staying(world: World) -> list[str]:
    return [pod.uid for pod in world.pods if not pod.going]


def settled(world: World, number: int, machine: bytes, effects: Sequence[Any]) -> World:
    """Keep the machine and carry out its effects. Nothing is sent to a pod on its way out, but by
    a gateway that started after the question, or one whose watch lags by a whole fence."""
    gateway = world.gateways[number]
    lapsed = world.now_s >= gateway.granted_s + wire.FENCE_LAPSE_REAL_S > -math.inf
    for effect in effects:
        assert isinstance(effect, holding.Send), effect
        going = effect.pod_uid not in staying(world)
        assert not going or gateway.epoch or lapsed, f"sent to {effect.pod_uid}, which goes"
        world = marked(world, effect.request_id, effect.pod_uid, SENT)
    return placed(world, number, machine=machine)


def barred(world: World) -> set[str]:
    """Pods that stay, and to which some gateway has promised to send nothing."""
    machines = [look_at(gateway.machine) for gateway in world.gateways]
    return {uid for each in machines for uid in each._fences.barred()} & set(staying(world))


def is_fenced(world: World, number: int, fence_id: str) -> bool:
    """Whether a gateway keeps to a fence."""
    return fence_id in look_at(world.gateways[number].machine)._fences._fences


def kept(world: World, number: int, uids: tuple[str, ...]) -> bool:
    """Whether the gateway holds a request, or has one at these pods and they are not going."""
    there = {uid for uid in uids if uid in staying(world)}
    mine = [(uid, what) for at, uid, what in world.requests if at == number]
    return any(what == HELD or (what in (SENT, RUNNING) and uid in there) for uid, what in mine)


def marked(world: World, place: int, uid: str, what: str) -> World:
    changed = (world.requests[place][0], uid, what)
    requests = (*world.requests[:place], changed, *world.requests[place + 1 :])
    return world._replace(requests=requests)


def turn(world: World, number: int, act: str, *given: Any, **more: Any) -> World:
    """Have a gateway's machine do something, and carry out what it says."""
    return settled(world, number, *turned(world.gateways[number].machine, act, *given, **more))


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
    machines = [look_at(gateway.machine) for gateway in world.gateways]
    quiet = not any(each.held or each.next_wake() for each in machines)
    return quiet and not world.settling.busy and world.replicas == 0
