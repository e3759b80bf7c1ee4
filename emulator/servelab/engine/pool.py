"""The worker processes as seen from the emulator: started, given engines, replaced when dead."""

import asyncio
import contextlib
import itertools
import json
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modelserve.errors import InputError, ModelServeError, SetUpError
from servelab.engine.metering import Load

LOGGER = logging.getLogger(__name__)
LINE_LIMIT_BYTES = 16 * 1024 * 1024  # of a command, an answer or a log
START_LIMIT_REAL_S = 60.0
STOP_LIMIT_REAL_S = 5.0
LOADS_LIMIT_REAL_S = 2.0
RESTART_PAUSE_REAL_S = 0.5
LONGEST_PAUSE_REAL_S = 10.0
MAIN = 0


class WorkerError(ModelServeError):
    """A worker process could not do what it was told, or died of it."""


class _Process:
    """One worker process and the commands it has not answered yet."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.engines: set[str] = set()
        self.dials: dict[str, dict[int, str]] = {}  # by engine and port, its main one as MAIN
        self._ids = itertools.count()
        self._pending: dict[int, asyncio.Future[Any]] = {}

    async def call(self, operation: str, uid: str, **arguments: object) -> Any:
        """Send a command and wait for its result. Raises InputError or WorkerError."""
        number = next(self._ids)
        command = {"id": number, "op": operation, "uid": uid, **arguments}
        future = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        stdin = self.process.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(command, separators=(",", ":")).encode() + b"\n")
            return await future
        finally:
            self._pending.pop(number, None)

    def settle(self, message: Mapping[str, Any]) -> None:
        """Hand an answer to who waits for it."""
        future = self._pending.get(message["id"])
        if future is None or future.done():
            return
        if "error" not in message:
            future.set_result(message["result"])
        else:
            kind = InputError if message["kind"] == "input" else WorkerError
            future.set_exception(kind(message["error"]))

    def fail(self, code: int) -> None:
        """The process is gone: so are its answers."""
        for future in self._pending.values():
            if not future.done():
                future.set_exception(WorkerError(f"the engine worker ended with code {code}"))


class WorkerPool:
    """Worker processes with mock engines, by pod UID.

    ``on_log(uid, line)`` gets the engines' log lines; ``on_exit(uid, code)`` tells of an engine
    that went without being drained or killed, because its process died. Times are real seconds.
    """

    def __init__(
        self,
        workers: int,
        time_scale: float,
        host: str = "127.0.0.1",
        on_log: Callable[[str, str], None] = lambda uid, line: None,
        on_exit: Callable[[str, int], None] = lambda uid, code: None,
    ) -> None:
        if workers < 1:
            raise InputError(f"the number of engine workers must be at least 1, not {workers}")
        self._workers = workers
        self._time_scale = time_scale
        self._host = host
        self._on_log = on_log
        self._on_exit = on_exit
        self._processes: list[_Process] = []
        self._keepers: list[asyncio.Task[None]] = []
        self._changed = asyncio.Condition()
        self._stopping = False

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The workers that run."""
        return tuple(each.process.pid for each in self._processes)

    async def start(self) -> None:
        """Start all workers; returns when each is ready. Raises SetUpError."""
        ready = [asyncio.get_running_loop().create_future() for _ in range(self._workers)]
        self._keepers = [asyncio.create_task(self._keep(future)) for future in ready]
        try:
            await asyncio.gather(*ready)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End all workers and their engines; nobody is told."""
        self._stopping = True
        for process in list(self._processes):
            if process.process.stdin is not None:
                process.process.stdin.close()
        if self._keepers:
            _, late = await asyncio.wait(self._keepers, timeout=STOP_LIMIT_REAL_S)
            for process in list(self._processes):
                with contextlib.suppress(ProcessLookupError):
                    process.process.kill()
            for task in late:
                task.cancel()
            await asyncio.gather(*self._keepers, return_exceptions=True)
        self._keepers = []

    async def reserve(
        self,
        uid: str,
        container: Mapping[str, Any],
        annotations: Mapping[str, str],
        gpu_product: str,
        seed: int,
    ) -> str:
        """Bind an address for a pod's engine and tell it; connections are refused until ``serve``.

        Raises InputError where the real engine would not start, WorkerError if the worker fails.
        """
        process = self._of(uid) or await self._least_loaded()
        process.engines.add(uid)
        try:
            dial: str = await process.call(
                "reserve",
                uid,
                container=dict(container),
                annotations=dict(annotations),
                gpu=gpu_product,
                seed=seed,
            )
        except ModelServeError:
            # A cancelled wait leaves it: the worker has the command, and `kill` must find it.
            process.engines.discard(uid)
            raise
        process.dials[uid] = {MAIN: dial}
        return dial

    async def open(self, uid: str) -> None:
        """Listen, and answer as an engine that still loads: /health with 503.

        For engines whose profile says that they do; others refuse connections until ``serve``.
        """
        await self._reserved(uid).call("open", uid)

    async def serve(self, uid: str) -> None:
        """Listen, if it does not yet: from now on /health answers 200."""
        process = self._reserved(uid)
        others: Mapping[str, str] = await process.call("serve", uid)
        process.dials.get(uid, {}).update((int(port), dial) for port, dial in others.items())

    async def disturb(self, uid: str, *, hung: bool, factor: float) -> None:
        """Let it answer nothing, and its steps take ``factor`` as long; or be well again."""
        await self._reserved(uid).call("disturb", uid, hung=hung, factor=factor)

    async def drain(self, uid: str, grace_real_s: float) -> None:
        """As SIGTERM: no new connections; returns when all is answered or the grace is over."""
        await self._end(uid, "drain", grace_real_s=grace_real_s)

    async def kill(self, uid: str) -> None:
        """As SIGKILL: connections are cut. An unknown engine is dead already."""
        await self._end(uid, "kill")

    def dial(self, uid: str, port: int = MAIN) -> str:
        """The address of an engine, or of a port beside its main one; empty while it has none."""
        process = self._of(uid)
        return "" if process is None else process.dials.get(uid, {}).get(port, "")

    async def loads(self) -> Mapping[str, Load]:
        """What the engines that serve have done so far; none of a worker that does not answer."""
        found: dict[str, Load] = {}
        for process in list(self._processes):
            with contextlib.suppress(ModelServeError, TimeoutError):
                async with asyncio.timeout(LOADS_LIMIT_REAL_S):
                    told = await process.call("loads", "")
                found |= {uid: Load.parse(body) for uid, body in told.items()}
        return found

    async def _end(self, uid: str, operation: str, **arguments: object) -> None:
        process = self._of(uid)
        if process is None:
            return
        with contextlib.suppress(WorkerError):
            await process.call(operation, uid, **arguments)
        process.engines.discard(uid)
        process.dials.pop(uid, None)

    def _reserved(self, uid: str) -> _Process:
        process = self._of(uid)
        if process is None:
            raise InputError(f"no engine is reserved for pod {uid}")
        return process

    def _of(self, uid: str) -> _Process | None:
        return next((each for each in self._processes if uid in each.engines), None)

    async def _least_loaded(self) -> _Process:
        async with self._changed:
            await self._changed.wait_for(lambda: bool(self._processes) or self._stopping)
        if self._stopping:
            raise WorkerError("the engine workers are stopping")
        return min(self._processes, key=lambda each: len(each.engines))

    async def _keep(self, ready: "asyncio.Future[None]") -> None:
        """Run one worker, and another whenever it dies."""
        pause_real_s = RESTART_PAUSE_REAL_S
        while not self._stopping:
            try:
                process = await self._spawn()
            except Exception as error:
                if not ready.done():
                    ready.set_exception(error)
                    return
                pause_real_s = min(2 * pause_real_s, LONGEST_PAUSE_REAL_S)
            else:
                pause_real_s = RESTART_PAUSE_REAL_S
                if not ready.done():
                    ready.set_result(None)
                await self._follow(process)
            if not self._stopping:
                await asyncio.sleep(pause_real_s)

    async def _spawn(self) -> _Process:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-m", "servelab.engine.worker"),
            *("--time-scale", repr(self._time_scale), "--host", self._host),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT_BYTES,
            # We decide when it ends, not a Ctrl-C; and it works for itself (see ``precedence``).
            start_new_session=True,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(START_LIMIT_REAL_S):
                first = await process.stdout.readline()
        except BaseException:
            process.kill()
            await process.wait()
            raise
        if not first:
            code = await process.wait()
            raise SetUpError(f"an engine worker ended at once with code {code}: see its output")
        found = _Process(process)
        async with self._changed:
            self._processes.append(found)
            self._changed.notify_all()
        return found

    def _tell(self, lines: Sequence[tuple[str, str]]) -> None:
        for uid, line in lines:
            try:
                self._on_log(uid, line)
            except Exception:
                # A fault of the listener must not stop the worker's answers.
                LOGGER.exception("a log line of engine %s was not taken", uid)

    async def _follow(self, process: _Process) -> None:
        """Pass on what a worker says, until it ends."""
        stdout = process.process.stdout
        assert stdout is not None
        try:
            while line := await stdout.readline():
                message = json.loads(line)
                if "log" in message:
                    self._tell(message["log"])
                else:
                    process.settle(message)
        except ValueError:
            # A line that is too long, or no JSON: what it says can be trusted no more.
            LOGGER.exception("an engine worker is replaced")
            process.process.kill()
        finally:
            self._processes.remove(process)
        code = await process.process.wait()
        code = 128 - code if code < 0 else code
        process.fail(code)
        if not self._stopping:
            for uid in sorted(process.engines):
                self._on_exit(uid, code)
