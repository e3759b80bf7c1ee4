"""The faults of one emulated node, and of the pods on it: read from pool, node and pod."""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from modelserve import errors, ports
from modelserve.api import faults as api
from modelserve.api import names, timestamps
from modelserve.api import pods as pod_facts
from modelserve.api.faults import FaultType as Type
from servelab.node.faults import ailments, fault
from servelab.node.pods import podspec

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Troubles:
    """What a node's owner said goes wrong there. ``own`` befalls the node itself."""

    node: str
    scale: float
    began_s: float
    said: tuple[api.Fault, ...] = ()
    own: fault.Faults = fault.NONE
    gpus: int = 8
    _dealt: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def hear(self, said: Iterable[api.Fault], gpus: int) -> bool:
        """Take the list, and how many GPUs there are; returns whether it is news."""
        before, self.said, self.gpus = self.said, tuple(said), gpus
        target = fault.Target(self.node, self.node, self.began_s, self.scale, is_pod=False)
        self.own = fault.resolve(self.said, target)
        return self.said != before

    def of_pod(self, pod: podspec.Pod, began_s: float) -> tuple[fault.Faults, str]:
        """The pod's, and what is wrong with its annotation; those of its own count from then."""
        on_it = [each for each in self.said if self._reaches(each, pod)]
        shared = fault.resolve(on_it, self._target(pod, self.began_s))
        try:
            text = pod.annotations.get(names.FAULTS, "")
            said = api.parse(text, f"pod {pod.namespace}/{pod.name}")
        except errors.InputError as error:
            return shared, str(error)
        found = [each for each in said if not each.of_node]
        own = fault.resolve(found, self._target(pod, began_s))
        wrong = next((each for each in said if each.of_node), None)
        why = f"a fault of type {wrong.type} befalls nodes, not pods" if wrong else ""
        return fault.merge([shared, own]), why

    def ailment(self, now_s: float) -> ailments.Ailment:
        """What the node suffers now."""
        return ailments.of(self.own, self.gpus, now_s)

    def gone(self, uid: str) -> None:
        """The pod has given its GPUs back."""
        self._dealt.pop(uid, None)

    def _reaches(self, said: api.Fault, pod: podspec.Pod) -> bool:
        """Whether what befalls the node's GPUs befalls one of the pod's."""
        if said.type is not Type.XID:
            return True
        broken = {(said.seed + n) % self.gpus for n in range(min(said.gpus or 1, self.gpus))}
        return not broken.isdisjoint(self._of(pod))

    def _of(self, pod: podspec.Pod) -> tuple[int, ...]:
        """The pod's GPUs by index: the lowest that were free when it came."""
        if pod.uid not in self._dealt:
            taken = {index for held in self._dealt.values() for index in held}
            free = [index for index in range(self.gpus) if index not in taken]
            self._dealt[pod.uid] = tuple(free[: sum(pod_facts.gpus(pod.raw).values())])
        return self._dealt[pod.uid]

    def _target(self, pod: podspec.Pod, began_s: float) -> fault.Target:
        return fault.Target(pod.uid, self.node, began_s, self.scale, is_pod=True)


def of_node(node: ports.Object, scale: float) -> Troubles:
    """A node's, none yet."""
    meta = node["metadata"]
    began_s = timestamps.parse_if_any(meta.get("creationTimestamp")) or 0.0
    return Troubles(meta["name"], scale, began_s)


def said(
    pool: ports.Object | None, spec: Iterable[api.Fault], node: ports.Object
) -> list[api.Fault]:
    """All that a pool's spec, its annotation and the node's say; unreadable ones are logged."""
    found = list(spec)
    for kind, item in (("GPUPool", pool), ("node", node)):
        meta = (item or {}).get("metadata") or {}
        text = (meta.get("annotations") or {}).get(names.FAULTS, "")
        try:
            found += api.parse(text, f"{kind} {meta.get('name', '')}")
        except errors.InputError as error:
            log.warning("%s", error)
    return found
