"""Plays the cases on a real node, all side by side but those that need it alone."""

import asyncio
import contextlib
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from modelserve import errors, ports
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube
from servelab.cluster import releases
from servelab.node.checks import kubectl
from servelab.recording import cases, keeping, node, pieces, upsets

NAMESPACE = upsets.NAMESPACE
QUERIES = ("", "previous=true", "tailLines=1", "timestamps=true")
# Between the creations of two pods: many at once make a kubelet slow. A part of a second, so that
# each meets the relist at another phase.
APART_REAL_S = 0.83
AT_ONCE = 8
# Logs of a pod that is deleted are read so long before.
BEFORE_REAL_S = 0.3
INDIRECT = ("evict", "taint", "preempt")
GONE_REAL_S = 30.0
# Of a case, or of a question to the API server that changes nothing.
TRIES, PAUSE_REAL_S = 3, 1.0
# Probes of one that has just started begin at any time of their first period.
FRESH_REAL_S = 10.0
KEPT = ("generation", "deletionTimestamp", "deletionGracePeriodSeconds")
Tell = Callable[[str], None]
Answer = TypeVar("Answer")


class Cluster(ports.Cluster, Protocol):
    """What a recorder asks an API server for."""

    async def text(self, path: str, query: Mapping[str, str]) -> tuple[int, str]: ...

    async def request(
        self,
        method: str,
        path: str,
        body: ports.Object | None = None,
        *,
        content_type: str = "application/json",
    ) -> Any: ...


class Node(Protocol):
    """A real node, and whom it belongs to."""

    @property
    def kubeconfig(self) -> Path: ...

    def start_kubelet(self) -> None: ...

    def stop_kubelet(self) -> None: ...


@dataclass(slots=True)
class Taking:
    """A pod that is being recorded."""

    case: cases.Case
    clock: ports.Clock
    began_s: float
    updates: list[dict[str, Any]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    prints: list[dict[str, Any]] = field(default_factory=list)
    acts: list[dict[str, Any]] = field(default_factory=list)
    delete: dict[str, Any] | None = None

    def age_s(self) -> float:
        return self.clock.real_s() - self.began_s


class Recorder:
    """Records on one node."""

    def __init__(self, cluster: Cluster, real: Node, tell: Tell, clock: ports.Clock) -> None:
        self._cluster = cluster
        self._real = real
        self._tell = tell
        self._clock = clock
        self._room, self._turn = asyncio.Semaphore(AT_ONCE), asyncio.Lock()
        self._taking: dict[str, Taking] = {}

    async def record(self, chosen: Sequence[cases.Case], kept: keeping.Kept) -> None:
        """Record each, and keep what is finished. One that fails is told and left out."""
        watching = asyncio.create_task(self._watch())
        try:
            await self._clock.sleep_real(FRESH_REAL_S)
            together = [case for case in chosen if not case.alone]
            await asyncio.gather(*(self._in_turn(case, kept) for case in together))
            for case in chosen:
                if case.alone:
                    await self._tried(case, kept)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _in_turn(self, case: cases.Case, kept: keeping.Kept) -> None:
        async with self._room:
            async with self._turn:
                await self._clock.sleep_real(APART_REAL_S)
            await self._tried(case, kept)

    async def _tried(self, case: cases.Case, kept: keeping.Kept) -> None:
        """Record it; from the start again where the API server left something unanswered."""
        for left in reversed(range(TRIES)):
            try:
                found = await self._one(case)
            except errors.ClusterError as error:
                self._tell(f"{case.name} is not recorded: {error}")
                await self._remove(case.name)
                if not isinstance(error, errors.Unavailable) or not left:
                    return
            else:
                kept.add(case.name, found)
                self._tell(f"{case.name} is recorded")
                return

    async def _one(self, case: cases.Case) -> dict[str, Any]:
        taking = self._taking[case.name] = Taking(case, self._clock, self._clock.real_s())
        pod = case.manifest(node.NAME)
        await self._cluster.create(ports.PODS, NAMESPACE, pod)
        printing = asyncio.gather(*(self._print(taking, each) for each in case.prints))
        try:
            for act in case.acts:
                await self._do(taking, act)
            await self._until(taking, case.seconds)
            await printing
        finally:
            printing.cancel()
        if not taking.logs:
            await self._read_logs(taking)
        found = await self._told(taking, pod)
        with contextlib.suppress(errors.ClusterError):
            await self._cluster.delete(ports.PODS, NAMESPACE, case.name, grace_s=1)
        if case.alone:
            await self._gone(case.name)
        return found

    async def _remove(self, name: str) -> None:
        """Take away what a case has left that failed, by force."""
        with contextlib.suppress(errors.ClusterError):
            await self._cluster.delete(ports.PODS, NAMESPACE, name, grace_s=0)
        await self._gone(name)
        # Until the watch has told it too.
        await self._clock.sleep_real(PAUSE_REAL_S)

    async def _gone(self, name: str) -> None:
        give_up_s = self._clock.real_s() + GONE_REAL_S
        while self._clock.real_s() < give_up_s:
            try:
                await self._cluster.get(ports.PODS, NAMESPACE, name)
            except errors.NotFound:
                return
            except errors.Unavailable as error:
                self._tell(f"{name}: {error}")
            await self._clock.sleep_real(0.2)

    async def _asked(self, question: Callable[[], Awaitable[Answer]]) -> Answer:
        """Ask once more what was left unanswered, and changes nothing."""
        for _ in range(TRIES - 1):
            with contextlib.suppress(errors.Unavailable):
                return await question()
            await self._clock.sleep_real(PAUSE_REAL_S)
        return await question()

    async def _do(self, taking: Taking, act: cases.Act) -> None:
        path = ports.PODS.path(NAMESPACE, taking.case.name)
        if act.verb in ("delete", *INDIRECT):
            await self._until(taking, act.t - BEFORE_REAL_S)
            await self._read_logs(taking)
        await self._until(taking, act.t)
        at_s = round(taking.age_s(), 3)
        if act.verb == "delete":
            taking.delete = {"t": at_s}
            if act.grace_seconds is not None:
                taking.delete["options"] = {"gracePeriodSeconds": act.grace_seconds}
            await self._cluster.delete(
                ports.PODS, NAMESPACE, taking.case.name, grace_s=act.grace_seconds
            )
        elif act.verb == "evict":
            taking.delete = {"t": at_s}
            kind = {"apiVersion": "policy/v1", "kind": "Eviction"}
            meta = {"name": taking.case.name, "namespace": NAMESPACE}
            await self._cluster.request("POST", f"{path}/eviction", {**kind, "metadata": meta})
        elif act.verb == "patch":
            kept = {"t": at_s, "subresource": act.subresource, "patch": act.patch}
            where = f"{path}/{act.subresource}" if act.subresource else path
            try:
                await self._cluster.request(
                    "PATCH", where, dict(act.patch), content_type=ports.STRATEGIC_PATCH
                )
                taking.acts.append(kept)
            except errors.ClusterError as error:
                self._tell(f"{taking.case.name}: refused: {error}")
        else:
            await self._upset(taking, act, at_s)

    async def _upset(self, taking: Taking, act: cases.Act, at_s: float) -> None:
        """What happens to the node."""
        if act.verb == "taint":
            taint = {"key": "recording", "value": "now", "effect": "NoExecute"}
            taking.delete = {"t": at_s}
            try:
                await upsets.taint(self._cluster, [taint])
                await self._until(taking, taking.case.seconds - 1)
            finally:
                await upsets.taint(self._cluster, [])
        elif act.verb == "kubelet":
            self._real.stop_kubelet()
            await self._clock.sleep_real(act.stop_seconds)
            self._real.start_kubelet()
            taking.acts.append({"t": at_s, "kubeletStoppedSeconds": act.stop_seconds})
        elif act.verb == "preempt":
            await upsets.preempt(self._cluster, taking.case)
            taking.delete = {"t": at_s}

    async def _watch(self) -> None:
        async for event in self._cluster.watch(ports.PODS, NAMESPACE):
            if event.change is ports.Change.SYNCED:
                continue
            meta = event.object["metadata"]
            taking = self._taking.get(meta["name"])
            if taking is None:
                continue
            taking.updates.append(
                {
                    "t": round(taking.age_s(), 3),
                    "type": str(event.change),
                    "metadata": {key: meta[key] for key in KEPT if key in meta},
                    "status": event.object.get("status") or {},
                }
            )

    async def _until(self, taking: Taking, age_s: float) -> None:
        await self._clock.sleep_real(max(0.0, age_s - taking.age_s()))

    async def _read_logs(self, taking: Taking) -> None:
        first = taking.case.manifest(node.NAME)["spec"]["containers"][0]["name"]
        for query in QUERIES:
            asked = {"container": first, **dict(urllib.parse.parse_qsl(query))}
            path = ports.PODS.path(NAMESPACE, taking.case.name, "log")
            status, body = await self._asked(partial(self._cluster.text, path, asked))
            taking.logs.append({"query": query, "status": status, "body": body})

    async def _print(self, taking: Taking, wanted: cases.Print) -> None:
        await self._until(taking, wanted.t)
        words = wanted.command.format(pod=taking.case.name, node=node.NAME)
        found = await kubectl.ask(self._real.kubeconfig, words)
        told = {"t": wanted.t, "command": wanted.command}
        taking.prints.append(told | found.model_dump(by_alias=True))

    async def _told(self, taking: Taking, pod: Mapping[str, Any]) -> dict[str, Any]:
        chosen = f"involvedObject.name={taking.case.name}"
        gone = (u["t"] for u in taking.updates if "deletionTimestamp" in u["metadata"])
        if taking.delete is not None and any(a.verb in INDIRECT for a in taking.case.acts):
            # Others told why they delete it before they did.
            taking.delete["t"] = next(gone, taking.delete["t"])
        listing = partial(self._cluster.list, ports.EVENTS, NAMESPACE, field_selector=chosen)
        events, _ = await self._asked(listing)
        return {
            "scenario": taking.case.name,
            "kubelet": releases.KUBERNETES,
            "containerRuntime": f"containerd://{pieces.CONTAINERD.removeprefix('v')}",
            "behavior": dict(taking.case.behavior),
            "pod": pod,
            "delete": taking.delete,
            **({"acts": taking.acts} if taking.acts else {}),
            "updates": list(taking.updates),
            "events": [_event(each) for each in events],
            "logs": taking.logs,
            **({"prints": taking.prints} if taking.prints else {}),
        }


def _event(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": item["type"],
        "reason": item["reason"],
        "message": item.get("message", item.get("note", "")),
        "count": item.get("count"),
        "firstTimestamp": item.get("firstTimestamp"),
        "lastTimestamp": item.get("lastTimestamp"),
        "source": item.get("source"),
        "fieldPath": item["involvedObject"].get("fieldPath"),
    }


async def record(real: Node, chosen: Sequence[cases.Case], kept: keeping.Kept, tell: Tell) -> None:
    """Record these cases, and keep each as soon as it is finished."""
    async with await kube.KubeCluster.connect(str(real.kubeconfig)) as cluster:
        await Recorder(cluster, real, tell, clocks.SystemClock()).record(chosen, kept)
