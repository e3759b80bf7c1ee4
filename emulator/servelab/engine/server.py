"""One mock engine: a driven core behind the surface of the engine that its profile names."""

import asyncio
import random
import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence

from modelserve.ports import Clock
from servelab.engine import stamps
from servelab.engine.admin.control import Control
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Call, Served
from servelab.engine.core.intake import QueueFull
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.driver import Driver
from servelab.engine.exchange import Exchange
from servelab.engine.httpd.server import HttpServer
from servelab.engine.metrics.exporting import Exporter, Load
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import bounding, logs, registry
from servelab.engine.surfaces.surface import ManyPorts, State
from servelab.engine.text import lengths
from servelab.engine.text.answers import Answer
from servelab.engine.text.transcript import Transcript

BACKLOG = 2048
_CHAT = "/chat/completions"
# Different texts or thoughts made for one request; further choices repeat them. Words alone cost
# nothing to make.
MOST_TEXTS = 16
# vLLM tells its load every 10 s while it has any.
LOAD_LOG_REAL_S = 10.0
# SGLang looks every 5 s whether work is left; so late an end helps nobody here.
DRAIN_LOOK_REAL_S = 0.5


class EngineServer:
    """A mock engine on a socket that is bound already; it listens from ``start`` on."""

    def __init__(
        self,
        spec: EngineSpec,
        clock: Clock,
        on_log: Callable[[str], None] | None = None,
        *,
        ends_by_itself: bool = True,
        control: Control | None = None,
        began_s: float | None = None,
    ) -> None:
        """``ends_by_itself``: answers end where a model would, not at the limit alone.

        ``control``: what changes its metrics and makes it fail, if anything does. ``began_s``:
        when its container started, if that was not just now.
        """
        self.spec = spec
        self.served = Served(spec.served_name, spec.config.max_model_tokens, spec.options)
        self.created_unix_s = int(time.time())
        self.state = State.LOADING
        self.start_up_s = 0.0  # from its beginning to readiness
        self._began_s = clock.now_s() if began_s is None else began_s
        self._clock = clock
        self._loop, self._home = asyncio.get_running_loop(), threading.get_ident()
        self._on_log = on_log
        self._ends_by_itself = ends_by_itself
        self._rng = random.Random(spec.seed)
        self._names = random.Random()  # names must differ from those of other engines
        law = spec.law if control is None else control.law(spec.law)
        self._core = EngineCore(spec.config, law, random.Random(self._rng.getrandbits(64)))
        outside = registry.of(spec.profile.engine, spec.options)
        self.load: Load = self._core if control is None else control.load(self._core)
        self.exporter: Exporter = outside.exporter(spec, self.load, time.time())
        self.driver = Driver(self._core, clock, self.exporter)
        self._log = logs.of(spec.profile.engine, spec.options)
        self._control = control
        self._surface = surface = outside.surface(self)
        if control is not None:
            surface = control.surface(surface, spec.profile)
            control.attach(self)
        quiet = on_log is None or self.served.has("disable-uvicorn-access-log")
        routes = bounding.guarded(surface.routes())
        self.http = HttpServer(surface, None if quiet else self._answered, routes=routes)
        self._others: list[HttpServer] = []
        self._over = False
        self._load_timer: asyncio.TimerHandle | None = None
        self._totals = self.exporter.totals

    @property
    def open_requests(self) -> int:
        """Sequences that wait or run."""
        return self.driver.open_requests

    def unix_s(self) -> float:
        """The time of day."""
        return time.time()

    def name(self) -> str:
        """32 hexadecimal digits that name one request."""
        return f"{self._names.getrandbits(128):032x}"

    def settle(self) -> None:
        """Bring the core and the exporter up to now."""
        self.driver.settle()

    def end_step(self, in_s: float) -> None:
        """Let the step under way end so many seconds from now."""
        self.settle()
        self._core.end_step(self._clock.now_s() + in_s)
        self.settle()

    @property
    def choices(self) -> Sequence[Choice]:
        """All that waits or runs."""
        return [sink for sink in self.driver.sinks if isinstance(sink, Choice)]

    def abort(self, choices: Collection[Choice]) -> None:
        """End these; their answers tell of it."""
        self.driver.abort(choices)

    def hold(self, *, requeue: bool = False) -> None:
        """Compute nothing until ``release``; ``requeue``: all that run queue up again."""
        self.driver.hold(requeue=requeue)

    def release(self) -> None:
        """Go on after ``hold``."""
        self.driver.release()

    def forget(self) -> bool:
        """Empty the prefix cache, if nothing runs or waits; whether it was done."""
        return self.driver.forget()

    async def listen(self, sock: socket.socket) -> None:
        """Listen, and answer as an engine that still loads."""
        self.http.loading = True
        await self.http.start(sock)

    async def start(self, sock: socket.socket) -> None:
        """Listen, if it does not yet, and be ready."""
        if not self.http.listening:
            await self.http.start(sock)
        self.http.loading = False
        self.state = State.READY
        self.start_up_s = self._clock.now_s() - self._began_s
        self._load_timer = asyncio.get_running_loop().call_later(LOAD_LOG_REAL_S, self._log_load)

    @property
    def openai_path(self) -> str:
        """Where OpenAI's API begins; empty where the engine does not speak it."""
        paths = [route.path for route in self._surface.routes()]
        chats = (path for path in paths if path.endswith(_CHAT))
        plain = "/v1" if "/v1/models" in paths else ""
        return next(chats, plain).removesuffix(_CHAT)

    @property
    def other_ports(self) -> Sequence[int]:
        """Ports that the real engine has beside its main one."""
        return list(self._surface.other_ports()) if isinstance(self._surface, ManyPorts) else []

    async def start_other(self, port: int, sock: socket.socket) -> None:
        """Answer there what the real engine answers on this port."""
        assert isinstance(self._surface, ManyPorts)
        routes = bounding.guarded(self._surface.other_ports()[port])
        http = HttpServer(self._surface, routes=routes)
        await http.start(sock)
        self._others.append(http)

    async def drain(self, grace_real_s: float) -> bool:
        """Take no new connections, let what runs finish, stop; False if the grace ran out."""
        self.state = State.DRAINING
        finished = True
        try:
            async with asyncio.timeout(grace_real_s):
                polls = self.spec.profile.listens_while_draining
                while polls and self.open_requests:  # noqa: ASYNC110 (the real one looks too)
                    await asyncio.sleep(DRAIN_LOOK_REAL_S)
                self.http.stop_listening()
                await self.http.quiet()
        except TimeoutError:
            finished = False
        await self.kill()
        for line in self._log.stop_lines():
            self._say(line)
        return finished

    async def kill(self) -> None:
        """Stop at once; what runs is cut off."""
        self._over = True
        self.driver.stop()
        if self._load_timer is not None:
            self._load_timer.cancel()
        for http in (self.http, *self._others):
            await http.abort()

    def generate(self, exchange: Exchange, reply: Reply) -> None:
        """Put the reply's call into the core, all its sequences or none.

        Handlers of large requests do so on another thread than the loop's.
        """
        if threading.get_ident() != self._home:
            self._loop.call_soon_threadsafe(self._generate_soon, exchange, reply)
            return
        call = reply.call
        planned = self._plan(reply, call)
        reply.add([choice for _, choice in planned])
        try:
            if self._control is not None:
                self._control.before_generate(self.spec.config.queue_limit)
            self.driver.submit(planned)
        except Exception as error:
            reply.forget()
            if isinstance(error, QueueFull):
                self.exporter.count_rejection()
            raise
        self.exporter.count_request(call.n, call.max_tokens)
        reply.ids = [request.id for request, _ in planned]
        exchange.on_gone(lambda: self._cancel(reply))
        reply.open(exchange)

    def _generate_soon(self, exchange: Exchange, reply: Reply) -> None:
        if self._over:
            return
        try:
            self.generate(exchange, reply)
        except Exception as error:
            exchange.fail(error)

    def _plan(self, reply: Reply, call: Call) -> list[tuple[CoreRequest, Choice]]:
        planned: list[tuple[CoreRequest, Choice]] = []
        cached = self.spec.config.prefix_caching
        for prompt in call.prompts:
            limit = call.limit_tokens(prompt, self.served)
            for _ in range(call.n):
                seed = self._rng.getrandbits(32) if call.seed is None else call.seed + len(planned)
                answer = _answer(call, seed, planned)
                natural = self._ends_by_itself and not call.ignore_eos
                rng = random.Random(seed) if natural else None
                ending = lengths.ending(call, limit, answer, rng)
                request = CoreRequest(
                    *(self.name(), prompt.tokens, ending.tokens, ending.reason),
                    tokens=Transcript(prompt.encoded, answer) if cached else None,
                    allowed_tokens=limit,
                    fixed_length=call.ignore_eos,
                    priority=call.priority,
                )
                planned.append((request, Choice(reply, answer, prompt, ending)))
        return planned

    def _cancel(self, reply: Reply) -> None:
        for request_id in reply.ids:
            self.driver.cancel(request_id)
        reply.forget()

    def _answered(self, client: str, method: str, target: str, status: int) -> None:
        line = self._log.access(client, method, target, status)
        self._say(line)

    def _log_load(self) -> None:
        """Say what the last interval brought, unless it was nothing."""
        self._load_timer = asyncio.get_running_loop().call_later(LOAD_LOG_REAL_S, self._log_load)
        self.settle()
        totals, before = self.exporter.totals, self._totals
        self._totals = totals
        if totals == before and not self.open_requests:
            return
        interval_s = LOAD_LOG_REAL_S * self._clock.scale
        prompt, generation = (
            (now - then) / interval_s for now, then in zip(totals, before, strict=True)
        )
        self._say(self._log.load(prompt, generation, self.load))

    def _say(self, line: str | None) -> None:
        if line is not None and self._on_log is not None:
            self._on_log(stamps.stamped(line, time.time()))


def _answer(call: Call, seed: int, planned: Sequence[tuple[CoreRequest, Choice]]) -> Answer:
    """What the next choice says."""
    made = call.write is not None or call.thinks is not None
    if made and len(planned) >= MOST_TEXTS:
        return planned[len(planned) % MOST_TEXTS][1].answer
    return call.answer(seed)
