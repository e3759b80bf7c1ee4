"""Looks at nodes, their GPUs and containers: what metrics and commands tell of them."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import names, timestamps
from modelserve.api import pods as pod_facts
from modelserve.catalog import gpus
from servelab.engine import metering
from servelab.node.gpus import devices, migtable, readings, slots
from servelab.node.machines import usage
from servelab.node.pods import podspec
from servelab.node.rules import amounts
from servelab.node.serving import engines, hosting

# Younger looks are no window to tell a rate from.
LEAST_WINDOW_REAL_S = 0.15
# Older ones tell of another time.
LONGEST_WINDOW_REAL_S = 60.0
# With fewer pods in mind nobody looks which of them are gone.
LEAST_KEPT = 100


@dataclass(frozen=True, slots=True)
class Look:
    """What all engines had done at one moment."""

    at_unix_s: float
    loads: Mapping[str, metering.Load]


class Inspector:
    """Of all nodes of a process. ``refresh`` before what needs the present."""

    def __init__(self, host: hosting.Host) -> None:
        self._host = host
        self._before = self._now = Look(0.0, {})
        self._sorted_unix_s = 0.0
        self._by_node: dict[str, list[hosting.ServedPod]] = {}
        self._engines: dict[str, tuple[podspec.Pod, tuple[engines.Engine, ...]]] = {}
        self._most_engines = LEAST_KEPT

    @property
    def host(self) -> hosting.Host:
        return self._host

    @property
    def window_real_s(self) -> float:
        """How long the window is that activity is told of."""
        return self._now.at_unix_s - self._before.at_unix_s

    async def refresh(self) -> None:
        """Ask the engines, unless they were asked a moment ago."""
        now = self._host.unix_s()
        if now - self._now.at_unix_s < LEAST_WINDOW_REAL_S:
            return
        loads = await self._host.loads()
        before = (
            self._now if now - self._now.at_unix_s < LONGEST_WINDOW_REAL_S else Look(now, loads)
        )
        self._before, self._now = before, Look(now, loads)
        self._forget()

    def pods_of(self, node: str) -> Sequence[hosting.ServedPod]:
        """The pods of a node, the oldest first."""
        now = self._host.unix_s()
        if now - self._sorted_unix_s >= LEAST_WINDOW_REAL_S:
            # A scrape of all nodes must not look through all pods for each of them.
            self._sorted_unix_s, self._by_node = now, {}
            for served in sorted(self._host.served(), key=_age):
                self._by_node.setdefault(served.pod.node, []).append(served)
        return self._by_node.get(node, ())

    def running(self, served: hosting.ServedPod) -> Sequence[hosting.Found]:
        """The containers of a pod that run."""
        found = (self.find(served, spec.name) for spec in served.pod.containers)
        return [each for each in found if each is not None]

    def find(self, served: hosting.ServedPod, name: str) -> hosting.Found | None:
        """The container of that name if it runs."""
        spec = next((each for each in served.pod.containers if each.name == name), None)
        running = ((served.entry(name) or {}).get("state") or {}).get("running")
        if spec is None or running is None:
            return None
        return hosting.Found(served, spec, timestamps.parse_time(running["startedAt"]))

    def engine(self, pod: podspec.Pod, container: str) -> engines.Engine | None:
        """The engine of a container, if it has one."""
        return next((e for e in self.engines(pod) if e.container.name == container), None)

    def engines(self, pod: podspec.Pod) -> Sequence[engines.Engine]:
        """The engines of a pod."""
        known = self._engines.get(pod.uid)
        if known is None or known[0].raw["spec"] != pod.raw["spec"]:
            node = self._host.served_nodes().get(pod.node)
            found = () if node is None else engines.of(pod, node_gpu(node), mig_profile(node))
            known = self._engines[pod.uid] = (pod, found)
            if len(self._engines) > self._most_engines:
                # Who only forwards ports never refreshes.
                self._forget()
        return known[1]

    @property
    def remembered(self) -> int:
        """Pods whose engines are kept in mind."""
        return len(self._engines)

    def _forget(self) -> None:
        """Pods that are gone."""
        uids = {served.pod.uid for served in self._host.served()}
        self._engines = {uid: kept for uid, kept in self._engines.items() if uid in uids}
        self._most_engines = max(LEAST_KEPT, 2 * len(self._engines))

    def used_by(self, found: hosting.Found) -> usage.Usage:
        """What a container uses."""
        pod, now = found.served.pod, self._host.unix_s()
        engine = self.engine(pod, found.container.name)
        limits = (found.container.raw.get("resources") or {}).get("limits") or {}
        told = usage.Limits(
            float(amounts.parse(str(limits["cpu"]))) if "cpu" in limits else None,
            int(amounts.parse(str(limits["memory"]))) if "memory" in limits else None,
        )
        works = None
        if engine is not None:
            starting_s = engines.starting_s(engines.stamps(pod), found.started_unix_s, now)
            load = self._now.loads.get(engine.key, metering.Load())
            works = usage.Engine(engine.ranks, starting_s, load, self._host.scale)
        return usage.container(found.started_unix_s, now, works, told)

    def used_on(self, node: hosting.ServedNode) -> usage.Usage:
        """What a node uses."""
        pods = [
            usage.pod([self.used_by(found) for found in self.running(served)])
            for served in self.pods_of(node.name)
        ]
        began = timestamps.parse_time(node.object["metadata"]["creationTimestamp"])
        return usage.node(pods, began, self._host.unix_s(), capacity(node))

    def gpus_of(self, node: hosting.ServedNode) -> Sequence[readings.Reading]:
        """The sensors of a node's GPUs, by index; none where NVIDIA's driver is not."""
        gpu = node_gpu(node)
        if gpu is None or gpu.amd:
            return ()
        uses: dict[str, list[readings.Use]] = {}
        for served in self.pods_of(node.name):
            if pod_facts.is_over(served.pod.raw):
                continue
            ids = slots.told(served.pod.raw)
            for uuid, (name, rank) in zip(ids, self._places(served.pod, len(ids)), strict=True):
                uses.setdefault(uuid, []).append(self._use(served, name, rank))
        return [
            readings.read(device, gpu, uses.get(device.uuid, ()))
            for device in devices.of_node(node.name, gpu_count(node, gpu))
        ]

    def given(self, found: hosting.Found) -> Sequence[readings.Reading] | None:
        """The GPUs of a container, as it sees them, and those it has slices of; None without."""
        pod = found.served.pod
        node = self._host.served_nodes().get(pod.node)
        mine = {uuid for uuid, _ in self._ids(found)}
        if node is None or not mine:
            return None
        mine |= {part.gpu_uuid for part in self.slices(found)}
        wanted = (pod.namespace, pod.name, found.container.name)
        seen = (each for each in self.gpus_of(node) if each.device.uuid in mine)
        return [readings.seen_by(each, wanted) for each in seen]

    def slices(self, found: hosting.Found) -> Sequence[migtable.Slice]:
        """The slices of GPUs that a container has, with what its engine uses of them."""
        node = self._host.served_nodes().get(found.served.pod.node)
        gpu = None if node is None else node_gpu(node)
        if node is None or gpu is None:
            return ()
        ranks = dict(self._ids(found))
        cut = slots.slices_of(ranks, node.name, gpu_count(node, gpu), gpu)
        return [self._used(found, part, ranks[part.uuid]) for part in cut]

    def _used(self, found: hosting.Found, part: migtable.Slice, rank: int) -> migtable.Slice:
        use = self._use(found.served, found.container.name, rank)
        used_mib = min(use.used_bytes // gpus.MIB, part.facts["memory"])
        holder = use.holder
        return dataclasses.replace(part, used_mib=used_mib, pid=holder.pid, process=holder.process)

    def _ids(self, found: hosting.Found) -> Sequence[tuple[str, int]]:
        """Ids of the GPUs, or slices, that a container was given, and its rank on each."""
        ids = slots.told(found.served.pod.raw)
        places = zip(ids, self._places(found.served.pod, len(ids)), strict=True)
        return [(uuid, rank) for uuid, (name, rank) in places if name == found.container.name]

    def _places(self, pod: podspec.Pod, count: int) -> Sequence[tuple[str, int]]:
        """Container and rank of each of a pod's GPUs, in the order of its containers."""
        places = [
            (each.name, rank)
            for each in pod.containers
            if not each.init
            for rank in range(_asked(each))
        ]
        # By claims, containers do not say how many: the engine has what is left.
        found = self.engines(pod)
        rest = found[0].container.name if found else pod.containers[-1].name
        return [*places, *((rest, rank) for rank in range(len(places), count))][:count]

    def _use(self, served: hosting.ServedPod, name: str, rank: int) -> readings.Use:
        pod, engine = served.pod, self.engine(served.pod, name)
        found = self.find(served, name)
        if engine is None or found is None or rank >= engine.ranks:
            holder = readings.Holder(pod.namespace, pod.name, name)
            return readings.Use(holder, xid=served.xid(name))
        pid, process = engine.on_gpu(rank, engines.command_line(engine.container))
        holder = readings.Holder(pod.namespace, pod.name, name, pid, process)
        now_ms = round(self._host.unix_s() * 1000)
        used = readings.engine_bytes(engine.launch, engine.gpu, engines.stamps(pod), now_ms)
        took_s = self.window_real_s * self._host.scale
        before, now = (look.loads.get(engine.key) for look in (self._before, self._now))
        doing = readings.IDLE
        if now is not None:
            start = before or metering.Load()
            doing = readings.activity(start, now, took_s, engine.launch, engine.gpu)
        return readings.Use(holder, used, doing, served.xid(name))


def node_gpu(node: hosting.ServedNode) -> gpus.Gpu | None:
    """The GPU that a node's annotation names, or its label."""
    meta = node.object["metadata"]
    label = (meta.get("labels") or {}).get(names.LABEL_GPU_PRODUCT, "")
    try:
        return gpus.find((meta.get("annotations") or {}).get(names.NODE_GPU) or label)
    except errors.UnknownName:
        return None


def mig_profile(node: hosting.ServedNode) -> str:
    """Whose slices its GPUs are, as its annotation says; empty for whole ones."""
    return str((node.object["metadata"].get("annotations") or {}).get(names.NODE_MIG_PROFILE, ""))


def gpu_count(node: hosting.ServedNode, gpu: gpus.Gpu) -> int:
    """How many it has; where they are shared or cut, capacity and labels count parts."""
    told = (node.object["metadata"].get("annotations") or {}).get(names.NODE_GPU_COUNT)
    there = (node.object["status"].get("capacity") or {}).get(gpu.resource_name, 0)
    return int(told or there)


def capacity(node: hosting.ServedNode) -> tuple[float, int]:
    """Cores and bytes of memory that a node has."""
    found = node.object["status"].get("capacity") or {}
    return (
        float(amounts.parse(str(found.get("cpu", "1")))),
        int(amounts.parse(str(found.get("memory", "0")))),
    )


def _asked(container: podspec.Container) -> int:
    resources = container.raw.get("resources") or {}
    wanted = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    found = (str(amount) for name, amount in wanted.items() if name.startswith("nvidia.com/"))
    return sum(int(amount) for amount in found if amount.isdecimal())


def _age(served: hosting.ServedPod) -> tuple[str, str]:
    raw = served.pod.raw
    began = (raw.get("status") or {}).get("startTime") or raw["metadata"].get("creationTimestamp")
    return str(began or ""), served.pod.uid
