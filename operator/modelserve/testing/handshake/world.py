"""The hand-shake's world at one moment: gateways, pods, requests, messages under way.

All of it is immutable and compares by value, so that a moment that came before is known again. The
gateways' machines are the product's own, kept as bytes.
"""

import functools
import math
import pickle
from typing import Any, NamedTuple

from modelserve.api import wire
from modelserve.decide import fleet, holding, settle, shares

TERMS = holding.Terms(slots=2)
SENT, RUNNING, HELD, ANSWERED, LOST = "sent", "running", "held", "answered", "lost"
Message = tuple[Any, ...]
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
    arrivals: int = 0  # that may still come
    mishaps: int = 0  # crashes and lost writes that may still happen
    hurry: int = 0  # seconds that may pass although something else could happen
    calm: bool = True  # nobody has crashed, and nothing came late


def begin(gateways: int, arrivals: int, mishaps: int, hurry: int) -> World:
    pods = (Pod("p1"),)
    dealt = shares.split(TERMS.slots, {str(number): 1.0 for number in range(gateways)})
    each = [fresh(pods, share) for share in dealt.values()]
    return World(0.0, tuple(each), pods, arrivals=arrivals, mishaps=mishaps, hurry=hurry)


def fresh(pods: tuple[Pod, ...], share: int | None, epoch: int = 0) -> Gateway:
    machine = holding.Holding(TERMS)
    machine.set_share(share or 1, 0.0)
    machine.update(TERMS, routed(pods), 0.0)
    return Gateway(pickle.dumps(machine), pods, tell(machine), epoch)


def routed(pods: tuple[Pod, ...]) -> list[fleet.Replica]:
    return [fleet.Replica(p.uid, p.ready, p.going, p.going, p.uid, p.uid) for p in pods]


def tell(machine: holding.Holding) -> Told:
    return machine.held, tuple(machine.demand("default", "m", 0.0).in_flight.items())


@functools.lru_cache(maxsize=4096)
def look_at(machine: bytes) -> holding.Holding:
    """A machine to look at only: others look at the same one."""
    found: holding.Holding = pickle.loads(machine)
    return found


def work_on(world: World, number: int) -> holding.Holding:
    """A gateway's machine to act on; ``settled`` takes what became of it into the world."""
    found: holding.Holding = pickle.loads(world.gateways[number].machine)
    return found


def canonical(world: World) -> World:
    """The same with its gateways in one order: which of them is called what makes no difference."""

    def rank(number: int) -> tuple[Any, ...]:
        mine = [(place, *rest) for place, (at, *rest) in enumerate(world.requests) if at == number]
        mail = sorted(
            repr((m[0], *m[2:])) for m in world.mail if m[0] in ADDRESSED and m[1] == number
        )
        said = sorted(granted for at, granted in world.answers if at == number)
        return world.gateways[number], mine, mail, said

    order = sorted(range(len(world.gateways)), key=rank)
    if order == list(range(len(order))):
        return world
    new = {old: number for number, old in enumerate(order)}
    return world._replace(
        gateways=tuple(world.gateways[old] for old in order),
        requests=tuple((new[at], uid, what) for at, uid, what in world.requests),
        mail=frozenset((m[0], new[m[1]], *m[2:]) if m[0] in ADDRESSED else m for m in world.mail),
        answers=frozenset((new[at], granted) for at, granted in world.answers),
    )


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
    machines = [look_at(gateway.machine) for gateway in world.gateways]
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
    machines = [look_at(gateway.machine) for gateway in world.gateways]
    quiet = not any(each.held or each.next_wake() for each in machines)
    return quiet and not world.settling.busy and world.replicas == 0
