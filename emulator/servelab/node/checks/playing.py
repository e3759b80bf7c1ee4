"""Plays recorded pods on an emulated node of a cluster, all side by side, and watches them."""

import asyncio
import contextlib
import secrets
import urllib.parse
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from modelserve import errors, ports
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube
from modelserve.api import timestamps
from servelab.node.checks import (
    answers,
    comparing,
    kubectl,
    prints,
    recording,
    surroundings,
    telling,
)

READY_REAL_S = 60.0
POLL_REAL_S = 0.25
# After the last fact, for what comes with it: events, and facts that should not come.
SETTLE_REAL_S = 1.0
# More at once than this would find a busy machine, which no kubelet was recorded on.
AT_ONCE = 20
# Logs of a pod that is deleted are read so long before.
BEFORE_REAL_S = 0.3
NODE_GPU = "NVIDIA-H100-80GB-HBM3"
NAMESPACES = ports.Resource("", "v1", "namespaces", "Namespace", namespaced=False)
Happening = Callable[[], Awaitable[None]]
ACCOUNTS = ports.Resource("", "v1", "serviceaccounts", "ServiceAccount")


@dataclass(slots=True)
class Played:
    """A pod that plays: what the watch told so far."""

    scenario: recording.Scenario
    created_s: float = 0.0
    updates: list[recording.Update] = field(default_factory=list)
    logs: list[recording.Log] = field(default_factory=list)
    events: list[recording.Event] = field(default_factory=list)
    prints: list[recording.Print] = field(default_factory=list)
    over: bool = False

    @property
    def name(self) -> str:
        return str(self.scenario.pod["metadata"]["name"])


class Stage:
    """One emulated node and one namespace, for the length of a check."""

    def __init__(
        self, cluster: kube.KubeCluster, kubeconfig: Path, tell: Callable[[str], None]
    ) -> None:
        self._cluster = cluster
        self._kubeconfig = kubeconfig
        self._tell = tell
        self._clock = clocks.SystemClock()
        self._name = f"kubelet-check-{secrets.token_hex(3)}"
        self._pods: dict[str, Played] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._events = telling.Events(cluster, self._name, self._clock, self._age_of)

    @property
    def place(self) -> comparing.Place:
        """Where the pods run."""
        return comparing.Place(self._name, f"{self._name}-0")

    async def play(self, scenarios: Sequence[recording.Scenario]) -> list[comparing.Run]:
        """Play them all; one run each, in order. Raises ClusterError, SetUpError."""
        self._pods = {str(s.pod["metadata"]["name"]): Played(s) for s in scenarios}
        async with self._set_up():
            watching = asyncio.create_task(self._watch())
            counting = asyncio.create_task(self._events.watch())
            telling = asyncio.create_task(self._report())
            try:
                await asyncio.gather(*(self._one(each) for each in self._pods.values()))
            finally:
                for task in (watching, counting, telling):
                    task.cancel()
                await asyncio.gather(watching, counting, telling, return_exceptions=True)
        return [
            comparing.Run(self.place, each.updates, each.events, each.logs, each.prints)
            for each in self._pods.values()
        ]

    @contextlib.asynccontextmanager
    async def _set_up(self) -> AsyncIterator[None]:
        meta = {"metadata": {"name": self._name}}
        size = surroundings.capacity([each.scenario for each in self._pods.values()])
        spec: dict[str, Any] = {"gpu": NODE_GPU, "nodes": 1, "taints": [], **size}
        pool = meta | {"spec": spec | {"kubelet": {"serializeImagePulls": False}}}
        self._tell(f"starting the emulated node {self.place.node}")
        await self._cluster.create(ports.GPUPOOLS, None, pool)
        try:
            await self._cluster.create(NAMESPACES, None, meta)
            try:
                await self._until(self._ready, f"node {self.place.node} is not ready")
                yield
            finally:
                await self._clear()
                await self._cluster.delete(NAMESPACES, None, self._name)
        finally:
            await self._cluster.delete(ports.GPUPOOLS, None, self._name)

    async def _clear(self) -> None:
        """Remove the pods at once: without their node nobody would, for a while."""
        for name in self._pods:
            with contextlib.suppress(errors.NotFound):
                await self._cluster.delete(ports.PODS, self._name, name, grace_s=0)

    async def _ready(self) -> bool:
        try:
            node = await self._cluster.get(ports.NODES, None, self.place.node)
            await self._cluster.get(ACCOUNTS, self._name, "default")
        except errors.NotFound:
            return False
        found = node.get("status", {}).get("conditions") or ()
        # The node controller takes the taint of a new node away only after a moment.
        fresh = any("not-ready" in taint["key"] for taint in node["spec"].get("taints") or ())
        return not fresh and any(c["type"] == "Ready" and c["status"] == "True" for c in found)

    async def _until(self, met: Callable[[], Awaitable[bool]], complaint: str) -> None:
        give_up_s = self._clock.real_s() + READY_REAL_S
        while not await met():
            if self._clock.real_s() > give_up_s:
                raise errors.SetUpError(
                    f"{complaint} after {READY_REAL_S:.0f} s: does the emulator run there?"
                )
            await self._clock.sleep_real(POLL_REAL_S)

    async def _one(self, played: Played) -> None:
        async with self._room:
            await self._play(played)

    async def _play(self, played: Played) -> None:
        await self._cluster.create(ports.PODS, self._name, self._manifest(played.scenario))
        asking = (self._print(played, each) for each in prints.compared(played.scenario))
        printing = asyncio.gather(*asking)
        try:
            await self._see_through(played)
        finally:
            printing.cancel()
            await asyncio.gather(printing, return_exceptions=True)

    def _happenings(self, played: Played) -> list[tuple[float, Happening]]:
        """What others did to the pod while it was recorded, and when, in order."""
        scenario, deletion = played.scenario, played.scenario.delete
        found: list[tuple[float, Happening]] = [
            (at_s, partial(self._write_condition, played, entry))
            for at_s, entry in surroundings.foreign_conditions(scenario)
            if entry.get("reason") != surroundings.EVICTED
        ]
        # Conditions are written as they were seen.
        acts = [act for act in scenario.acts if "status" not in act.patch]
        found += [(act.t, partial(self._act, played, act)) for act in acts]
        if deletion is not None:
            found.append((deletion.t - BEFORE_REAL_S, partial(self._read_logs, played)))
            found.append((deletion.t, partial(self._remove, played, deletion)))
        return sorted(found, key=lambda happening: happening[0])

    async def _write_condition(self, played: Played, entry: Mapping[str, Any]) -> None:
        # An old condition would be taken for a stale one.
        fresh = {"lastTransitionTime": timestamps.format_time(self._clock.wall_s())}
        await self._patch(played, {"status": {"conditions": [{**entry, **fresh}]}}, "status")

    async def _act(self, played: Played, act: recording.Act) -> None:
        words = surroundings.annotations(played.scenario, act.t)
        await self._patch(played, {"metadata": {"annotations": words}})
        await self._patch(played, dict(act.patch), act.subresource)

    async def _patch(self, played: Played, body: Mapping[str, Any], subresource: str = "") -> None:
        await self._cluster.patch(
            ports.PODS,
            self._name,
            played.name,
            dict(body),
            content_type=ports.STRATEGIC_PATCH,
            subresource=subresource,
        )

    async def _print(self, played: Played, wanted: recording.Print) -> None:
        await self._sleep_until(played, wanted.t)
        words = wanted.command.format(pod=played.name, node=self.place.node)
        found = await kubectl.ask(self._kubeconfig, f"-n {self._name} {words}")
        told = {"t": wanted.t, "command": wanted.command}
        played.prints.append(recording.Print(**told, **found.model_dump()))

    async def _see_through(self, played: Played) -> None:
        for at_s, happens in self._happenings(played):
            await self._sleep_until(played, at_s)
            with contextlib.suppress(errors.NotFound):
                await happens()
        await self._until_over(played)
        if played.scenario.delete is None:
            await self._read_logs(played)
        found = await self._events.read(played.name, partial(self._told_all, played))
        played.events += found
        played.over = True

    def _told_all(self, played: Played, events: Sequence[recording.Event]) -> bool:
        run = comparing.Run(self.place, (), events, ())
        return answers.told_all(played.scenario, run)

    async def _remove(self, played: Played, deletion: recording.Deletion) -> None:
        """Delete it, or evict it, as it was."""
        if not surroundings.is_evicted(played.scenario):
            grace_s = deletion.grace_s
            await self._cluster.delete(ports.PODS, self._name, played.name, grace_s=grace_s)
            return
        await self._cluster.create(
            ports.eviction(played.name), self._name, ports.eviction_body(played.name, self._name)
        )

    def _manifest(self, scenario: recording.Scenario) -> dict[str, Any]:
        meta = {k: v for k, v in scenario.pod["metadata"].items() if k in ("name", "labels")}
        given = scenario.pod["metadata"].get("annotations") or {}
        meta["annotations"] = {**given, **surroundings.annotations(scenario, 0.0)}
        return {"metadata": meta, "spec": {**scenario.pod["spec"], "nodeName": self.place.node}}

    async def _until_over(self, played: Played) -> None:
        """Until every recorded fact has come and its time is over; or far beyond it."""
        scenario = played.scenario
        latest_s = scenario.last_s + comparing.slack_s(scenario, scenario.last_s) + SETTLE_REAL_S
        looked_at = -1
        while True:
            # To compare takes a while, and other pods wait: only when there is something new.
            if looked_at != len(played.updates):
                looked_at = len(played.updates)
                if comparing.seen_all(scenario, played.updates, self.place):
                    break
            if played.created_s and self._age_s(played) > latest_s:
                return
            await self._clock.sleep_real(POLL_REAL_S)
        seen_s = played.updates[-1].t if played.updates else 0.0
        over_s = max(scenario.last_s, seen_s, scenario.last_line_s + comparing.JITTER_S)
        await self._sleep_until(played, over_s + SETTLE_REAL_S)

    def _age_of(self, pod: str) -> float | None:
        played = self._pods.get(pod)
        return None if played is None else self._age_s(played)

    def _age_s(self, played: Played) -> float:
        return self._clock.real_s() - played.created_s

    async def _sleep_until(self, played: Played, age_s: float) -> None:
        while not played.created_s:
            await self._clock.sleep_real(POLL_REAL_S / 5)
        await self._clock.sleep_real(max(0.0, age_s - self._age_s(played)))

    async def _watch(self) -> None:
        async for event in self._cluster.watch(ports.PODS, self._name):
            if event.change is ports.Change.SYNCED:
                continue
            meta = event.object["metadata"]
            played = self._pods.get(meta["name"])
            if played is None or played.over:
                continue
            now = self._clock.real_s()
            played.created_s = played.created_s or now
            told = {
                key: meta[key]
                for key in ("generation", "deletionTimestamp", "deletionGracePeriodSeconds")
                if key in meta
            }
            played.updates.append(
                recording.Update(
                    t=now - played.created_s,
                    type=str(event.change),
                    metadata=told,
                    status=event.object.get("status") or {},
                )
            )

    async def _read_logs(self, played: Played) -> None:
        for log in played.scenario.logs:
            status, body = await self._log(played, log.query)
            played.logs.append(recording.Log(query=log.query, status=status, body=body))

    async def _log(self, played: Played, query: str) -> tuple[int, str]:
        # The recorder asked for the first container where there are several.
        first = str(played.scenario.pod["spec"]["containers"][0]["name"])
        asked = {"container": first, **dict(urllib.parse.parse_qsl(query))}
        return await self._cluster.text(ports.PODS.path(self._name, played.name, "log"), asked)

    async def _report(self) -> None:
        whole = len(self._pods)
        while True:
            done = sum(each.over for each in self._pods.values())
            self._tell(f"{done} of {whole} pods have played")
            await self._clock.sleep_real(5.0)
