"""What a device plugin hands out on a node, and which of it each pod has.

A pod keeps what it has: its annotation tells it, so that a restart finds the same.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from modelserve.api import names, pool
from modelserve.catalog import gpus, mig
from modelserve.ports import Object
from servelab.node.gpus import devices, migtable, slices
from servelab.node.rules import admission


def of_node(node: str, spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> Mapping[str, Sequence[str]]:
    """Ids by extended resource, as containers see them; a shared GPU's stands there several times.

    A GPU is ``GPU-<uuid>``, a slice of one ``MIG-<uuid>``.
    """
    shares = spec.time_slicing.replicas if spec.time_slicing else 1
    whole = [device.uuid for device in devices.of_node(node, spec.gpus_per_node)]
    cut = slices.of_pool(spec, gpu)
    if not cut:
        # The shares of one GPU are the last to be handed out together.
        return {gpu.resource_name: whole * shares}
    return {
        slices.resource(spec, gpu, profile): [
            _slice(uuid, profile, place) for uuid in whole for place in range(count)
        ]
        * shares
        for profile, count in cut.items()
    }


@dataclass(slots=True)
class Given:
    """Which ids the pods of one node have."""

    by_pod: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def take(self, pod: Object, there: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
        """Ids for a pod, the first that are free; those its annotation tells, if it has them.

        Fewer than it asks for if the node has no more.
        """
        meta = pod["metadata"]
        uid = str(meta["uid"])
        if uid in self.by_pod:
            return self.by_pod[uid]
        known = tuple(told(pod))
        every = {each for ids in there.values() for each in ids}
        if known and every.issuperset(known):
            self.by_pod[uid] = known
            return known
        asked = admission.requests(pod)
        found: list[str] = []
        for resource, ids in there.items():
            found += self._free(ids)[: int(asked.get(resource, 0))]
        if found:
            self.by_pod[uid] = tuple(found)
        return tuple(found)

    def keep(self, uids: Iterable[str]) -> None:
        """Only these pods are still there."""
        kept = set(uids)
        self.by_pod = {uid: ids for uid, ids in self.by_pod.items() if uid in kept}

    def _free(self, ids: Sequence[str]) -> list[str]:
        taken = [each for given in self.by_pod.values() for each in given]
        free = []
        for each in ids:
            if each in taken:
                taken.remove(each)
            else:
                free.append(each)
        return _spread(free) if len(set(free)) < len(free) else free


def _spread(free: Sequence[str]) -> list[str]:
    """Of GPUs that are shared, always the one with the most shares left, and so the fewest pods.

    As NVIDIA's device plugin hands them out (``distributedAlloc``): one by one. Where two GPUs
    have as many left, it stays with the one it took last.
    """
    left = {each: free.count(each) for each in free}
    found = []
    for _ in free:
        most = max(left, key=lambda each: left[each])
        left[most] -= 1
        found.append(most)
    return found


def slices_of(ids: Iterable[str], node: str, count: int, gpu: gpus.Gpu) -> list[migtable.Slice]:
    """Those of the ids that are slices of the node's GPUs, GPU by GPU."""
    wanted = frozenset(ids)
    return [
        migtable.of_gpu(gpu, device.uuid, profile, found, place)
        for device in devices.of_node(node, count)
        for profile in mig.profiles(gpu).values()
        for place in range(mig.COMPUTE_SLICES)
        if (found := _slice(device.uuid, profile, place)) in wanted
    ]


def told(pod: Object) -> Sequence[str]:
    """Ids that the pod's annotation tells."""
    text = (pod["metadata"].get("annotations") or {}).get(names.GPUS, "")
    return [each for each in text.split(",") if each]


def _slice(uuid: str, profile: mig.Profile, place: int) -> str:
    digits = hashlib.sha256(f"{uuid}/{profile.name}/{place}".encode()).hexdigest()
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32])
    return f"MIG-{'-'.join(parts)}"
