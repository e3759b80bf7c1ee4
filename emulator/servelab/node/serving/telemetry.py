"""What is asked of a node as a whole: metrics, stats, pods, health, configuration."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from servelab.node.gpus import dcgm, labels
from servelab.node.serving import exposition, hosting, inspecting, summary

NODE = web.RequestKey("node", str)
# Rates are told over at least so long, as a kubelet's stats are ten seconds apart.
RATE_REAL_S = 10.0


@dataclass(slots=True)
class _Times:
    """Processor times of a node at two looks."""

    before_s: float
    before: Mapping[tuple[str, ...], float]
    now_s: float
    now: Mapping[tuple[str, ...], float]


class Telemetry:
    """The handlers; ``request[NODE]`` names the node, empty if nothing does."""

    def __init__(self, inspector: inspecting.Inspector) -> None:
        self._inspector = inspector
        self._times: dict[str, _Times] = {}

    async def resource(self, request: web.Request) -> web.Response:
        """``/metrics/resource``."""
        return _text(exposition.resource(await self._row(request)))

    async def cadvisor(self, request: web.Request) -> web.Response:
        """``/metrics/cadvisor``."""
        return _text(exposition.cadvisor(await self._row(request)))

    async def metrics(self, request: web.Request) -> web.Response:
        """``/metrics``."""
        return _text(exposition.kubelet(await self._row(request)))

    async def dcgm(self, request: web.Request) -> web.Response:
        """``/metrics/dcgm``, which no kubelet has: what an exporter on the node would export."""
        return await exported(self._inspector, self._nodes(request))

    async def summary(self, request: web.Request) -> web.Response:
        """``/stats/summary``."""
        row = await self._row(request)
        node = self._one(request)
        times = summary.times(row)
        known = self._times.get(row.name)
        if known is None or row.at_unix_s - known.now_s >= RATE_REAL_S:
            before = known or _Times(row.at_unix_s, times, row.at_unix_s, times)
            known = _Times(before.now_s, before.now, row.at_unix_s, times)
            there = self._host.served_nodes()
            self._times = {name: kept for name, kept in self._times.items() if name in there}
            self._times[row.name] = known
        window_s = row.at_unix_s - known.before_s
        body = summary.render(row, known.before, window_s, self._inspector.gpus_of(node))
        return _json(body)

    async def pods(self, request: web.Request) -> web.Response:
        """``/pods``: those of the node, or of all where none is named."""
        names = {node.name for node in self._nodes(request)}
        return _json(_list(s.pod.raw for s in self._host.served() if s.pod.node in names))

    async def running_pods(self, request: web.Request) -> web.Response:
        """``/runningpods/``."""
        names = {node.name for node in self._nodes(request)}
        found = (s for s in self._host.served() if s.pod.node in names)
        return _json(_list(s.pod.raw for s in found if self._inspector.running(s)))

    async def healthz(self, request: web.Request) -> web.Response:
        """``/healthz``."""
        if "verbose" in request.query:
            checks = "".join(f"[+]{each} ok\n" for each in ("ping", "log", "syncloop"))
            return web.Response(text=f"{checks}healthz check passed\n")
        return web.Response(text="ok")

    async def configz(self, request: web.Request) -> web.Response:
        """``/configz``: the settings that an emulated kubelet keeps to."""
        node = self._one(request)
        capacity = node.object["status"].get("capacity") or {}
        return _json(
            {
                "kubeletconfig": {
                    "kind": "KubeletConfiguration",
                    "apiVersion": "kubelet.config.k8s.io/v1beta1",
                    "authentication": {
                        "anonymous": {"enabled": False},
                        "webhook": {"enabled": True, "cacheTTL": "2m0s"},
                    },
                    "authorization": {
                        "mode": "Webhook",
                        "webhook": {
                            "cacheAuthorizedTTL": "5m0s",
                            "cacheUnauthorizedTTL": "30s",
                        },
                    },
                    "nodeStatusReportFrequency": "5m0s",
                    "nodeLeaseDurationSeconds": 40,
                    "maxPods": int(capacity.get("pods", 110)),
                }
            }
        )

    @property
    def _host(self) -> hosting.Host:
        return self._inspector.host

    def _nodes(self, request: web.Request) -> list[hosting.ServedNode]:
        known = self._host.served_nodes()
        name = request[NODE]
        if not name:
            return [known[each] for each in sorted(known)]
        if name not in known:
            raise web.HTTPNotFound(text=f'node "{name}" is not emulated here\n')
        return [known[name]]

    def _one(self, request: web.Request) -> hosting.ServedNode:
        found = self._nodes(request)
        if len(found) != 1:
            raise web.HTTPBadRequest(
                text=f"{len(found)} nodes are served at this address: put /nodes/<name> before "
                f"{request.path}, or ask through the API server\n"
            )
        return found[0]

    async def _row(self, request: web.Request) -> exposition.NodeRow:
        node = self._one(request)
        await self._inspector.refresh()
        inspector = self._inspector
        served = inspector.pods_of(node.name)
        cores, memory_bytes = inspecting.capacity(node)
        rows = [
            _container(found, inspector, (each.entry(found.container.name) or {}))
            for each in served
            for found in inspector.running(each)
        ]
        return exposition.NodeRow(
            node.name,
            str(node.object["status"]["nodeInfo"]["kubeletVersion"]),
            cores,
            memory_bytes,
            inspector.used_on(node),
            rows,
            len(served),
            self._host.unix_s(),
        )


async def exported(
    inspector: inspecting.Inspector, nodes: Iterable[hosting.ServedNode]
) -> web.Response:
    """What dcgm-exporters on these nodes would export."""
    await inspector.refresh()
    found = [(node.name, each) for node in nodes for each in inspector.gpus_of(node)]
    return _text(dcgm.render(".".join(labels.DRIVER), found))


def _container(
    found: hosting.Found, inspector: inspecting.Inspector, entry: Mapping[str, Any]
) -> exposition.ContainerRow:
    pod = found.served.pod
    return exposition.ContainerRow(
        pod.namespace,
        pod.name,
        pod.uid,
        found.container.name,
        found.container.image,
        str(entry.get("containerID", "")),
        inspector.used_by(found),
    )


def _text(body: str) -> web.Response:
    return web.Response(body=body.encode(), headers={"Content-Type": exposition.CONTENT_TYPE})


def _json(body: Mapping[str, Any]) -> web.Response:
    return web.Response(text=json.dumps(body), content_type="application/json")


def _list(items: Any) -> Mapping[str, Any]:
    return {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(items)}
