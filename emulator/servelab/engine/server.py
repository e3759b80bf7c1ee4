"""One mock engine's HTTP side: the OpenAI-compatible routes of vLLM over a driven core."""

import asyncio
import json
import random
import socket
import time
import uuid
from collections.abc import Callable

from aiohttp import HttpVersion11, web

from modelserve.errors import ModelServeError
from modelserve.ports import Clock
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore, QueueFull
from servelab.engine.driver import Driver
from servelab.engine.metrics import standins
from servelab.engine.metrics.vllm import CONTENT_TYPE, CacheConfig, Exporter
from servelab.engine.surfaces.vllm import (
    anthropic,
    chunks,
    lengths,
    logs,
    protocol,
    refusals,
    responses,
    routes,
)
from servelab.engine.surfaces.vllm.protocol import Call, Served
from servelab.engine.surfaces.vllm.replies import Choice, Reply, StreamReply
from servelab.engine.text.transcript import Transcript
from servelab.engine.text.vocabulary import Answer

MAX_BODY_BYTES = 256 * 1024 * 1024
BACKLOG = 2048
# How long the HTTP layer may take to notice cut connections.
CLEAN_UP_REAL_S = 1.0
# vLLM tells its load every 10 s while it has any.
LOAD_LOG_REAL_S = 10.0
EVENT_STREAM = {"Content-Type": "text/event-stream; charset=utf-8"}


class EngineServer:
    """A mock engine on a socket that is bound already; it listens from ``start`` on."""

    def __init__(
        self,
        spec: EngineSpec,
        clock: Clock,
        on_log: Callable[[str], None] = lambda line: None,
        *,
        ends_by_itself: bool = True,
    ) -> None:
        """``ends_by_itself``: answers end where a model would, not at the limit alone."""
        self.spec = spec
        self._ends_by_itself = ends_by_itself
        self._served = Served(spec.served_name, spec.config.max_model_tokens)
        self._on_log = on_log
        self._created = int(time.time())
        self._rng = random.Random(spec.seed)
        core = self._core = EngineCore(
            spec.config, spec.law, random.Random(self._rng.getrandbits(64))
        )
        cache = CacheConfig(
            *(spec.config.block_size, spec.config.kv_blocks, spec.gpu_memory_utilization),
            prefix_caching=spec.config.prefix_caching,
        )
        self.exporter = Exporter(core, spec.served_name, cache, time.time())
        self._load_gauges = standins.LoadGauges(spec.profile, time.time())
        self.driver = Driver(core, clock, self.exporter)
        self._runner = web.AppRunner(
            self._application(),
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=CLEAN_UP_REAL_S,
        )
        self._site: web.SockSite | None = None
        self._open: dict[asyncio.Transport, int] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._clock = clock
        self._load_timer: asyncio.TimerHandle | None = None
        self._totals = self.exporter.totals

    async def start(self, sock: socket.socket) -> None:
        """Listen: connections were refused until now."""
        await self._runner.setup()
        self._site = web.SockSite(self._runner, sock, backlog=BACKLOG)
        await self._site.start()
        self._load_timer = asyncio.get_running_loop().call_later(LOAD_LOG_REAL_S, self._log_load)

    async def drain(self, grace_real_s: float) -> bool:
        """Take no new connections, let what runs finish, stop; False if the grace ran out."""
        await self._stop_listening()
        finished = True
        try:
            async with asyncio.timeout(grace_real_s):
                await self._quiet.wait()
        except TimeoutError:
            finished = False
        await self.kill()
        return finished

    async def kill(self) -> None:
        """Stop at once; what runs is cut off."""
        await self._stop_listening()
        self.driver.stop()
        if self._load_timer is not None:
            self._load_timer.cancel()
        for transport in list(self._open):
            transport.abort()
        await self._runner.cleanup()

    async def _stop_listening(self) -> None:
        site, self._site = self._site, None
        if site is not None:
            await site.stop()
        if self._runner.server is not None:
            self._runner.server.pre_shutdown()

    def _application(self) -> web.Application:
        app = web.Application(
            client_max_size=MAX_BODY_BYTES, middlewares=[routes.answer_errors, self._track]
        )
        app.on_response_prepare.append(self._log_access)
        plain = routes.PlainRoutes(
            self._served,
            self.spec.model_name,
            self._created,
            standins.health_paths(self.spec.profile),
        )
        table = (
            ("POST", "/v1/chat/completions", self._chat),
            ("POST", "/v1/completions", self._completion),
            ("POST", "/v1/messages", self._messages),
            ("POST", "/v1/responses", self._responses),
            ("GET", "/load", self._load),
            *plain.routes(),
        )
        for method, path, handler in table:
            app.router.add_route(method, path, handler)
        for path in dict.fromkeys(("/metrics", self.spec.profile.metrics_path)):
            app.router.add_get(path, self._metrics)
        return app

    @web.middleware
    async def _track(self, request: web.Request, handler: routes.Handler) -> web.StreamResponse:
        """Know which connections have requests under way."""
        transport = request.transport
        assert transport is not None
        self._open[transport] = self._open.get(transport, 0) + 1
        self._quiet.clear()
        try:
            return await handler(request)
        finally:
            self._open[transport] -= 1
            if not self._open[transport]:
                del self._open[transport]
            if not self._open:
                self._quiet.set()

    async def _log_access(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Server"] = "uvicorn"
        peer = request.transport.get_extra_info("peername") if request.transport else None
        client = f"{peer[0]}:{peer[1]}" if peer else "-"
        self._on_log(logs.access(client, request.method, request.path_qs, response.status))

    def _log_load(self) -> None:
        """Say what the last interval brought, unless it was nothing."""
        self._load_timer = asyncio.get_running_loop().call_later(LOAD_LOG_REAL_S, self._log_load)
        self.driver.settle()
        totals, before = self.exporter.totals, self._totals
        self._totals = totals
        core = self._core
        if totals == before and core.idle:
            return
        interval_s = LOAD_LOG_REAL_S * self._clock.scale
        rates = [(now - then) / interval_s for now, then in zip(totals, before, strict=True)]
        line = logs.load(rates[0], rates[1], core.running, core.waiting, core.kv_usage)
        self._on_log(logs.stamped(line, time.time()))

    async def _load(self, request: web.Request) -> web.Response:
        body = json.dumps({"server_load": self.driver.open_requests}).encode()
        return web.Response(body=body, content_type="application/json")

    async def _metrics(self, request: web.Request) -> web.Response:
        self.driver.settle()
        core = self._core
        text = self.exporter.render()
        text += self._load_gauges.render(core.running, core.waiting, core.kv_usage)
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        call = protocol.parse_chat(await request.read(), _content_type(request), self._served)
        head = self._head("chatcmpl-" + _name(request), call)
        return await self._generate(request, _reply(head, call), Reply.body)

    async def _completion(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        call = protocol.parse_completion(raw, _content_type(request), self._served)
        head = self._head("cmpl-" + _name(request), call)
        return await self._generate(request, _reply(head, call), Reply.body)

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        call = anthropic.parse(await request.read(), _content_type(request), self._served)
        head = self._head("chatcmpl-" + _name(request), call)
        reply = anthropic.MessagesStream(head, call) if call.stream else Reply(head, call)
        try:
            return await self._generate(request, reply, anthropic.body)
        except refusals.Refusal as refusal:
            raise anthropic.translated(refusal) from None

    async def _responses(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        call, fields = responses.parse(raw, _content_type(request), self._served)
        head = self._head("resp_" + uuid.uuid4().hex, call)
        reply = responses.ResponsesStream(head, call, fields) if call.stream else Reply(head, call)
        return await self._generate(request, reply, lambda done: responses.body(done, fields))

    def _head(self, name: str, call: Call) -> chunks.Head:
        return chunks.Head(name, int(time.time()), self.spec.served_name, call.chat, call.role)

    async def _generate(
        self, request: web.Request, reply: Reply, body: Callable[[Reply], bytes]
    ) -> web.StreamResponse:
        if reply.call.late is not None:
            return await self._refuse_late(request, reply.call.late)
        ids = self._submit(reply, reply.call)
        try:
            if isinstance(reply, StreamReply):
                return await self._stream(request, reply)
            await reply.done
            return web.Response(body=body(reply), content_type="application/json")
        finally:
            for request_id in ids:
                self.driver.cancel(request_id)

    def _submit(self, reply: Reply, call: Call) -> list[str]:
        """Put all sequences of a request into the core, or none. Raises Refusal."""
        planned: list[tuple[CoreRequest, Choice]] = []
        for prompt in call.prompts:
            limit = call.limit_tokens(prompt, self._served)
            for _ in range(call.n):
                seed = self._rng.getrandbits(32) if call.seed is None else call.seed + len(planned)
                answer = Answer(seed)
                natural = self._ends_by_itself and not call.ignore_eos
                rng = random.Random(seed) if natural else None
                ending = lengths.ending(call, limit, answer, rng)
                unique = uuid.uuid4().hex
                core_request = CoreRequest(
                    *(unique, prompt.tokens, ending.tokens, ending.reason),
                    tokens=Transcript(prompt.encoded, answer),
                )
                planned.append((core_request, Choice(reply, answer, prompt, ending)))
        reply.add([choice for _, choice in planned])
        try:
            self.driver.submit(planned)
        except ModelServeError as error:
            raise self._refusal(error) from None
        self.exporter.count_request(call.n, call.max_tokens)
        return [core_request.id for core_request, _ in planned]

    def _refusal(self, error: Exception) -> refusals.Refusal:
        if isinstance(error, QueueFull):
            self.exporter.count_rejection()
            return refusals.queue_full(self.spec.config.queue_limit or 0)
        return refusals.Refusal(str(error), param="input_tokens")

    async def _refuse_late(
        self, request: web.Request, refusal: refusals.Refusal
    ) -> web.StreamResponse:
        """Say no in a stream that is open already, as the real engine does."""
        response = web.StreamResponse(headers=EVENT_STREAM)
        await response.prepare(request)
        await response.write(b"data: " + refusal.body() + b"\n\n" + chunks.DONE)
        await response.write_eof()
        return response

    async def _stream(self, request: web.Request, reply: StreamReply) -> web.StreamResponse:
        response = web.StreamResponse(headers=EVENT_STREAM)
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            raise ConnectionResetError("the client is gone")
        # Straight to the transport: a coroutine woken for each write would halve the throughput. An
        # answer's length bounds what can pile up for a slow reader.
        reply.open(transport, chunked=request.version >= HttpVersion11)
        await reply.done
        await response.write_eof()
        return response


def _reply(head: chunks.Head, call: Call) -> Reply:
    return StreamReply(head, call) if call.stream else Reply(head, call)


def _content_type(request: web.Request) -> str:
    return request.headers.get("Content-Type", "")


def _name(request: web.Request) -> str:
    return request.headers.get("X-Request-Id") or uuid.uuid4().hex
