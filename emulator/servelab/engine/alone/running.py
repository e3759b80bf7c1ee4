"""Runs engines in this process until a signal: sockets, cold starts, the admin endpoint."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from modelserve import errors
from modelserve.adapters import signals
from modelserve.adapters.clock import SystemClock
from modelserve.engines import types
from servelab.engine import addresses, stamps
from servelab.engine.admin.control import Control
from servelab.engine.alone.recipe import Line, Recipe, Start
from servelab.engine.server import EngineServer

if TYPE_CHECKING:
    from servelab.engine.admin.server import AdminServer

LOG_FLUSH_REAL_S = 0.02
_PORT_FLAGS = "--port or --host"
_OTHER_FLAGS = "the engine's own --metrics-port or --kserve-http-port, or --host"


@dataclass(frozen=True, slots=True)
class Admin:
    """Where the admin endpoint listens, and its token if it has one."""

    host: str
    port: int
    token: str | None = None


@dataclass(slots=True)
class _Engine:
    """One engine of the process."""

    recipe: Recipe
    sock: socket.socket
    clock: SystemClock
    server: EngineServer
    control: Control | None
    gone: bool = False
    url: str = field(init=False)

    def __post_init__(self) -> None:
        self.url = f"http://{addresses.joined(*self.address)}{self.server.openai_path}"

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, as the system has them."""
        host, port = self.sock.getsockname()[:2]
        return host, port


class Lines:
    """Log lines, written together after some milliseconds.

    A write for each would cost a busy engine a fifth of its answers.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._lines: list[str] = []

    def add(self, line: str) -> None:
        """Write the line, soon."""
        if not self._lines:
            asyncio.get_running_loop().call_later(LOG_FLUSH_REAL_S, self.flush)
        self._lines.append(line)

    def flush(self) -> None:
        """Write what there is. Where nobody reads any more, it is dropped."""
        lines, self._lines = self._lines, []
        if lines:
            with contextlib.suppress(OSError):
                self._write("\n".join((*lines, "")))


class Process:
    """The engines of this process.

    ``on_ready`` is told of each one that serves, ``write`` gets the log.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        admin: Admin | None,
        on_ready: Callable[[dict[str, object]], None],
        write: Callable[[str], object],
    ) -> None:
        self._lines = Lines(write)
        self._recipes = recipes
        self._admin = admin
        self._on_ready = on_ready
        self._stop = asyncio.Event()
        self._engines: list[_Engine] = []
        self._endpoint: AdminServer | None = None
        self._exit_code = 0
        self._ends: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT; the exit code, 130 for the latter.

        Raises SetUpError for a taken address.
        """
        signals.listen(self._stop, self._told)
        try:
            for recipe in self._recipes:
                self._engines.append(self._make(recipe))
            await self._open_admin()
            starts = [signals.unless_stopped(self._start(e), self._stop) for e in self._engines]
            await asyncio.gather(*starts)
            await self._stop.wait()
            await self._end_all()
        finally:
            if self._endpoint is not None:
                await self._endpoint.stop()
            for engine in self._engines:
                engine.sock.close()
            self._lines.flush()
        return self._exit_code

    def _told(self, number: int) -> None:
        if number == signal.SIGINT:
            self._exit_code = self._exit_code or signals.INTERRUPTED

    def _make(self, recipe: Recipe) -> _Engine:
        settings = recipe.settings
        sock = addresses.bound(settings.host, recipe.port, _PORT_FLAGS)
        clock = SystemClock(settings.time_scale)
        control: Control | None = None
        engine: _Engine | None = None
        if self._admin is not None:
            control = Control(clock, lambda code: self._exit(engine, code))
        server = EngineServer(
            recipe.spec, clock, lambda line: self._log(recipe, line), control=control
        )
        engine = _Engine(recipe, sock, clock, server, control)
        return engine

    async def _open_admin(self) -> None:
        if self._admin is None:
            return
        self._check_admin(self._admin)
        # Its HTTP library takes longer to import than all the rest.
        from servelab.engine.admin.server import AdminServer, Controlled

        controlled = {
            engine.recipe.name: Controlled(engine.recipe.name, engine.url, engine.control)
            for engine in self._engines
            if engine.control is not None
        }
        self._endpoint = AdminServer(controlled, self._admin.token)
        await self._endpoint.start(self._admin.host, self._admin.port)
        if self._admin.token is None and not _is_loopback(self._admin.host):
            self._lines.add(f"WARNING: the admin endpoint {self._endpoint.url} is open to anybody")

    def _check_admin(self, admin: Admin) -> None:
        """Sockets that do not listen yet would share an address without a word."""
        with addresses.bound(admin.host, 0, "--admin-listen") as sock:
            host = sock.getsockname()[0]
        for engine in self._engines:
            taken, port = engine.address
            if port == admin.port and addresses.overlap(taken, host):
                raise errors.SetUpError(
                    f"the admin endpoint cannot listen on {addresses.joined(host, port)}: engine "
                    f"{engine.recipe.name} has that address; choose another with --admin-listen or "
                    "--port"
                )

    async def _start(self, engine: _Engine) -> None:
        start = engine.recipe.start
        if start is not None:
            await self._load(engine, start)
        # Another process may have begun to listen there meanwhile.
        with addresses.claimed(*engine.address, _PORT_FLAGS):
            await engine.server.start(engine.sock)
        await self._open_others(engine)
        self._on_ready(self._ready(engine))

    async def _open_others(self, engine: _Engine) -> None:
        """Listen where the real engine does besides; without it, that would end as well."""
        host = engine.recipe.settings.host
        for port in engine.server.other_ports:
            sock = addresses.bound(host, port, _OTHER_FLAGS)
            with addresses.claimed(host, port, _OTHER_FLAGS):
                await engine.server.start_other(port, sock)

    async def _load(self, engine: _Engine, start: Start) -> None:
        """Say the lines of the start in time, and listen when the real engine would."""
        clock, loading = engine.clock, engine.recipe.spec.profile.while_loading
        began_s = clock.now_s()
        for line in (*start.lines, Line(start.ready_s, "")):
            await clock.sleep_real((began_s + line.at_s - clock.now_s()) / clock.scale)
            if line.listens and loading is types.WhileLoading.UNAVAILABLE:
                with addresses.claimed(*engine.address, _PORT_FLAGS):
                    await engine.server.listen(engine.sock)
            if line.text:
                self._log(engine.recipe, stamps.stamped(line.text, clock.wall_s()))

    def _log(self, recipe: Recipe, line: str) -> None:
        """A line of an engine's log; where there are several, it says whose."""
        self._lines.add(f"[{recipe.name}] {line}" if len(self._recipes) > 1 else line)

    def _ready(self, engine: _Engine) -> dict[str, object]:
        spec = engine.recipe.spec
        told: dict[str, object] = {
            "ready": True,
            "name": engine.recipe.name,
            "engine": spec.profile.engine.value,
            "model": spec.served_name,
            "url": engine.url,
        }
        if self._endpoint is not None:
            alone = len(self._engines) == 1
            path = "" if alone else f"/engines/{engine.recipe.name}"
            told["admin"] = self._endpoint.url + path
        return told

    def _exit(self, engine: _Engine | None, code: int) -> None:
        """An engine's process is to end at once; the last one takes ours along."""
        assert engine is not None
        self._lines.add(f"engine {engine.recipe.name} exits with code {code}")
        engine.gone = True
        self._exit_code = self._exit_code or code
        task = asyncio.get_running_loop().create_task(engine.server.kill())
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)
        if all(each.gone for each in self._engines):
            task.add_done_callback(lambda _: self._stop.set())

    async def _end_all(self) -> None:
        """Drain; at a second signal stop at once, as uvicorn does."""
        again = asyncio.Event()
        signals.listen(again)
        ends = [signals.unless_stopped(self._end(engine), again) for engine in self._engines]
        if not all(await asyncio.gather(*ends)):
            await asyncio.gather(*(engine.server.kill() for engine in self._engines))

    async def _end(self, engine: _Engine) -> None:
        if engine.gone:
            return
        await engine.server.drain(engine.recipe.settings.drain_seconds)


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(OSError):
        return socket.gethostbyname(host).startswith("127.")
    return host in ("::1", "localhost")
