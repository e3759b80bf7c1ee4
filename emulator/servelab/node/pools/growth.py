"""How an elastic pool grows and shrinks: what boots, what is idle, and what pods are told of it.

Pure but for what it remembers. Times are Unix seconds, real; those of the spec are emulated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from modelserve.api import conditions, pool
from modelserve.catalog import gpus
from modelserve.decide import placement
from modelserve.ports import Object
from servelab.node.gpus import labels
from servelab.node.pools import draining, elastic, registration
from servelab.node.rules import amounts

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Told:
    """An event for a pod that could not be placed."""

    pod: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    """``come`` are machines that are up now and have GPUs at that time; ``go`` are idle nodes."""

    come: Mapping[str, float]
    go: tuple[Object, ...]
    told: tuple[Told, ...]
    due_s: float


@dataclass(slots=True)
class Growth:
    """One elastic pool. ``booting`` are machines that were asked for, and when they are up;
    ``idle_since_s`` says since when a node has had no pod. The pool's status keeps both.
    """

    booting: dict[str, float] = field(default_factory=dict)
    idle_since_s: dict[str, float] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    def plan(
        self,
        name: str,
        spec: pool.GPUPoolSpec,
        gpu: gpus.Gpu,
        nodes: Sequence[Object],
        pods: Sequence[Object],
        now_s: float,
        scale: float,
    ) -> Plan:
        """Ask for nodes that pods wait for, find those that can go. ``pods``: all, bound or not."""
        rules = spec.elastic
        assert rules is not None
        there = {node["metadata"]["name"] for node in nodes}
        self.booting = {k: up_s for k, up_s in self.booting.items() if k not in there}
        staying = [node for node in nodes if draining.gone_at_s(node) is None]
        count = len(staying) + len(self.booting)
        template = shape(name, spec, gpu)
        pending = elastic.unplaced(pods, labels.resources(spec, gpu))
        # Without a pod that waits, nobody needs to know what is free where.
        places = self._places(staying, pods, template) if pending else []
        found = elastic.answer(pending, places, template, max(0, rules.max - count))
        boot_real_s = max(0.0, rules.boot_seconds - rules.device_seconds) / scale
        for fresh in free_names(name, there | self.booting.keys(), found.new):
            self.booting[fresh] = now_s + boot_real_s
        device_real_s = min(rules.device_seconds, rules.boot_seconds) / scale
        come = {k: up_s + device_real_s for k, up_s in self.booting.items() if up_s <= now_s}
        idle_real_s = rules.idle_seconds / scale
        go = self._idle(staying, pods, found.expected, now_s, idle_real_s)
        spare = max(0, count - rules.min)
        told = self._tell(name, found, count, rules.max, pending)
        later = [since_s + idle_real_s for since_s in self.idle_since_s.values()] if spare else []
        due = [*self.booting.values(), *later]
        return Plan(
            come, tuple(go[:spare]), told, min((at for at in due if at > now_s), default=NEVER)
        )

    def standing(
        self,
        name: str,
        spec: pool.GPUPoolSpec,
        plan: Plan,
        nodes: Sequence[Object],
        pods: Sequence[Object],
    ) -> dict[str, float | None]:
        """Names of the nodes that should be there, with the time of GPUs that are still to come."""
        rules = spec.elastic
        assert rules is not None
        there = {node["metadata"]["name"] for node in nodes}
        going = {node["metadata"]["name"] for node in plan.go}
        staying = sorted(
            (node["metadata"]["name"] for node in nodes if draining.gone_at_s(node) is None),
            key=number,
        )
        # A pod that came while its node was being taken away keeps it.
        used = {
            pod["spec"].get("nodeName")
            for pod in pods
            if elastic.holds_node(pod) and not pod["metadata"].get("deletionTimestamp")
        }
        leaving = there - set(staying)
        kept = [*(each for each in staying if each not in going), *sorted(leaving & used)]
        kept = kept[: rules.max]
        missing = max(0, rules.min - len({*kept, *self.booting}))
        always = free_names(name, {*self.booting, *there}, missing)
        return {**dict.fromkeys([*kept, *always]), **plan.come}

    def spared(self, spec: pool.GPUPoolSpec, nodes: int) -> Mapping[str, float]:
        """Nodes that are idle, and since when; none while the pool could spare none."""
        rules = spec.elastic
        return self.idle_since_s if rules is not None and nodes > rules.min else {}

    def _places(
        self, nodes: Iterable[Object], pods: Sequence[Object], template: elastic.Shape
    ) -> list[elastic.Place]:
        """Ready nodes and those to come; one without its GPUs yet will be like the template."""
        there: dict[str, list[Object]] = {}
        for pod in pods:
            if not _over(pod):
                there.setdefault(pod["spec"].get("nodeName", ""), []).append(pod)
        found = []
        for node in nodes:
            name = node["metadata"]["name"]
            if conditions.is_true(node, "Ready"):
                seen = _shape_of(node) if is_advertised(node) else template
                found.append(elastic.Place.of(name, seen, there.get(name, ())))
        return [*found, *(elastic.Place.of(name, template) for name in self.booting)]

    def _idle(
        self,
        nodes: Iterable[Object],
        pods: Sequence[Object],
        expected: frozenset[str],
        now_s: float,
        idle_real_s: float,
    ) -> list[Object]:
        """Nodes that have been without a pod for long enough, the highest numbers first."""
        used = {pod["spec"].get("nodeName") for pod in pods if elastic.holds_node(pod)}
        resting = {
            node["metadata"]["name"]: node
            for node in nodes
            if is_advertised(node) and node["metadata"]["name"] not in used | expected
        }
        before = self.idle_since_s
        self.idle_since_s = {name: before.get(name, now_s) for name in resting}
        over = [n for n, since_s in self.idle_since_s.items() if now_s - since_s >= idle_real_s]
        return [resting[name] for name in sorted(over, key=number, reverse=True)]

    def _tell(
        self, name: str, found: elastic.Answer, count: int, most: int, pending: Iterable[Object]
    ) -> tuple[Told, ...]:
        """Each pod is told once of each answer."""
        size = f"{name} {count}->{count + found.new} (max: {most})"
        said = {
            **dict.fromkeys(
                found.triggering, ("TriggeredScaleUp", f"pod triggered scale-up: [{{{size}}}]")
            ),
            **dict.fromkeys(
                found.refused,
                (
                    "NotTriggerScaleUp",
                    "pod didn't trigger scale-up: 1 max node group size reached",
                ),
            ),
        }
        waiting = {pod["metadata"]["uid"] for pod in pending}
        news = [Told(uid, *words) for uid, words in said.items() if self.told.get(uid) != words[0]]
        kept = {uid: reason for uid, reason in self.told.items() if uid in waiting}
        self.told = {**kept, **{told.pod: told.reason for told in news}}
        return tuple(news)


def shape(name: str, spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> elastic.Shape:
    """A node of the pool that is yet to come, with its GPUs."""
    return elastic.Shape(
        registration.render_labels(name, spec, f"{name}-x", gpu),
        registration.render_taints(spec, gpu),
        {
            name: amounts.parse(amount)
            for name, amount in registration.allocatable(registration.capacity(spec, gpu)).items()
        },
    )


def is_advertised(node: Object) -> bool:
    """Whether the node has had its GPUs: it carries no time for them any more."""
    return registration.devices_at_s(node) is None


def usable(nodes: Iterable[Object]) -> int:
    """How many of the nodes have their GPUs and stay."""
    return sum(is_advertised(node) and draining.gone_at_s(node) is None for node in nodes)


def number(node_name: str) -> int:
    """The number at the end of a node's name."""
    tail = node_name.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0


def _shape_of(node: Object) -> elastic.Shape:
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    found = {name: amounts.parse(str(amount)) for name, amount in allocatable.items()}
    return elastic.Shape(node["metadata"]["labels"], placement.lasting(node), found)


def free_names(name: str, taken: Iterable[str], count: int) -> list[str]:
    """So many names of nodes that are not taken, the lowest numbers first."""
    numbers = {number(each) for each in taken}
    free = (place for place in range(len(numbers) + count) if place not in numbers)
    return [f"{name}-{place}" for place, _ in zip(free, range(count), strict=False)]


def _over(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
