"""A gateway on real sockets, against fake engines and a cluster that lives in memory."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web

from modelserve import ports
from modelserve.adapters import clock as clocks
from modelserve.api import names
from modelserve.gateway import assembly

TOKEN = "secret"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class HastyClock(clocks.SystemClock):
    """Real seconds that pass fifty times as fast: nobody waits for a keep-alive in a test."""

    HASTE = 50

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__(scale)
        self._skipped_s = 0.0

    def real_s(self) -> float:
        return super().real_s() * self.HASTE + self._skipped_s

    def skip(self, seconds: float) -> None:
        """So many seconds are over at once."""
        self._skipped_s += seconds

    async def sleep_real(self, seconds: float) -> None:
        await super().sleep_real(seconds / self.HASTE)


class FakeCluster:
    """ports.Cluster, as far as a gateway uses it."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
        self._queues: list[tuple[str, asyncio.Queue[ports.WatchEvent]]] = []
        self._versions = itertools.count(1)
        self.hushed = asyncio.Event()
        self.hushed.set()

    def put(self, resource: ports.Resource, item: dict[str, Any]) -> None:
        metadata = {**item["metadata"], "resourceVersion": str(next(self._versions))}
        item = {**item, "metadata": metadata}
        key = metadata.get("namespace", ""), metadata["name"]
        known = self.objects.setdefault(resource.plural, {})
        change = ports.Change.MODIFIED if key in known else ports.Change.ADDED
        known[key] = item
        self._tell(resource, ports.WatchEvent(change, item))

    def remove(self, resource: ports.Resource, namespace: str, name: str) -> None:
        item = self.objects[resource.plural].pop((namespace, name))
        self._tell(resource, ports.WatchEvent(ports.Change.DELETED, item))

    def _tell(self, resource: ports.Resource, event: ports.WatchEvent) -> None:
        for plural, queue in self._queues:
            if plural == resource.plural:
                queue.put_nowait(event)

    async def watch(
        self,
        resource: ports.Resource,
        namespace: str | None = None,
        *,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncIterator[ports.WatchEvent]:
        await self.hushed.wait()
        queue: asyncio.Queue[ports.WatchEvent] = asyncio.Queue()
        self._queues.append((resource.plural, queue))
        for item in list(self.objects.get(resource.plural, {}).values()):
            yield ports.WatchEvent(ports.Change.ADDED, item)
        yield ports.WatchEvent(ports.Change.SYNCED, {})
        while True:
            yield await queue.get()

    async def apply(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        body: ports.Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
    ) -> ports.Object:
        metadata = {**body["metadata"], "namespace": namespace or "", "name": name, "uid": name}
        self.put(resource, {**body, "metadata": metadata})
        return self.objects[resource.plural][namespace or "", name]

    async def delete(
        self,
        resource: ports.Resource,
        namespace: str | None,
        name: str,
        *,
        grace_s: int | None = None,
        uid: str = "",
        resource_version: str = "",
    ) -> None:
        self.remove(resource, namespace or "", name)


class FakeEngine:
    """An HTTP server that answers as ``handler`` says and remembers what it was asked."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.headers: list[Any] = []
        self.cancelled = asyncio.Event()
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()
        self.healthy = True
        self.handler: Handler = self.answer_json
        self.address = ""
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application()
        app.router.add_get("/health", self._health)
        app.router.add_post("/{tail:.*}", self._post)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        host, port = self._runner.addresses[0]
        self.address = f"{host}:{port}"

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self.healthy else 503)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.headers.append(request.headers)
        self.asked.set()
        try:
            return await self.handler(request)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def answer_json(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"id": "1", "object": "chat.completion"})

    async def wait(self, request: web.Request) -> web.StreamResponse:
        """Answer when told."""
        await self.go_on.wait()
        return await self.answer_json(request)

    async def reset(self, request: web.Request) -> web.StreamResponse:
        """Cut the connection."""
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    def stream(self, *chunks: bytes, then_reset: bool = False) -> Handler:
        """A handler that streams these, each in a write of its own."""

        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for chunk in chunks:
                await response.write(chunk)
            if then_reset:
                # What was written must leave before the cut.
                await self.go_on.wait()
                assert request.transport is not None
                request.transport.abort()
            return response

        return handler


class Lab:
    """The gateway under test and what surrounds it."""

    def __init__(self, cluster: FakeCluster, gateway: assembly.Gateway, clock: HastyClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.gateway = gateway
        self.session = aiohttp.ClientSession()
        self.engines: list[FakeEngine] = []

    @property
    def url(self) -> str:
        return f"http://{assembly.join(*self.gateway.address)}"

    @property
    def internal_url(self) -> str:
        return f"http://{assembly.join(*self.gateway.internal_address)}"

    async def engine(self) -> FakeEngine:
        engine = FakeEngine()
        await engine.start()
        self.engines.append(engine)
        return engine

    def model(self, name: str = "llama", **spec: Any) -> None:
        """Apply a ModelServe."""
        metadata = {
            "namespace": "default",
            "name": name,
            "creationTimestamp": spec.pop("created", "2026-01-01T00:00:00Z"),
        }
        status = spec.pop("status", {})
        served = {"name": "m/M", **spec.pop("model", {})}
        body = {"model": served, "gpu": {"product": "H100"}, **spec}
        self.cluster.put(ports.MODELSERVES, {"metadata": metadata, "spec": body, "status": status})

    def pod(self, name: str, address: str, *, ready: bool = True, **metadata: Any) -> None:
        """Put an engine pod on the virtual node."""
        item = {
            "metadata": {
                "namespace": "default",
                "name": name,
                "uid": name,
                "labels": {names.LABEL_MODELSERVE: "llama"},
                "annotations": {names.DIAL: address, **metadata.pop("annotations", {})},
                **metadata,
            },
            "spec": {"nodeName": "gpu-1", "containers": [{"name": "engine"}]},
            "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
        }
        self.cluster.put(ports.PODS, item)

    def ask(self, path: str = "/v1/chat/completions", **body: Any) -> Any:
        """A request as a context manager of its response."""
        content = {"model": "llama", "messages": [{"role": "user", "content": "hi"}], **body}
        return self.session.post(self.url + path, json=content)

    async def asked(self, **body: Any) -> tuple[int, bytes]:
        """Ask and read the whole answer."""
        async with self.ask(**body) as response:
            return response.status, await response.read()

    def told(self, path: str, body: dict[str, Any]) -> Any:
        """A POST at the internal port."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        return self.session.post(self.internal_url + path, json=body, headers=headers)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let things happen until this holds."""
        async with asyncio.timeout(20):
            while not condition():  # noqa: ASYNC110 (of any kind: there is no event to wait for)
                await asyncio.sleep(0.001)


def make_lab(drain_real_s: float = 0.0) -> Lab:
    cluster = FakeCluster()
    node = {"metadata": {"name": "gpu-1", "labels": {names.LABEL_VIRTUAL: "true"}}}
    cluster.put(ports.NODES, node)
    settings = assembly.Settings(
        token=TOKEN, identity="g", epoch="e1", drain_real_s=drain_real_s, max_body_bytes=2**20
    )
    clock = HastyClock(10.0)
    lab = Lab(cluster, assembly.Gateway(cast(Any, cluster), clock, settings), clock)
    lab.model()
    return lab


@contextlib.asynccontextmanager
async def running(lab: Lab) -> AsyncIterator[Lab]:
    await lab.gateway.start()
    try:
        yield lab
    finally:
        await lab.session.close()
        await lab.gateway.stop()
        for engine in lab.engines:
            await engine.stop()


@pytest.fixture
async def lab() -> AsyncIterator[Lab]:
    """A gateway that knows one model, ``llama``, without replicas."""
    async with running(make_lab()) as lab:
        await lab.gateway.view.synced.wait()
        yield lab


@pytest.fixture
async def draining_lab() -> AsyncIterator[Lab]:
    """The same, with a generous drain."""
    async with running(make_lab(drain_real_s=1000.0)) as lab:
        await lab.gateway.view.synced.wait()
        yield lab


@pytest.fixture
async def unsynced_lab() -> AsyncIterator[Lab]:
    """The same, but the API server says nothing until ``cluster.hushed`` is set."""
    lab = make_lab()
    lab.cluster.hushed.clear()
    async with running(lab):
        yield lab
