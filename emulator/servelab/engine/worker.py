"""A worker process: many mock engines on one event loop, commanded by JSON lines on stdin.

A command is ``{"id", "op", "uid", …}``; each gets one ``{"id", "result"}`` or ``{"id", "error"}``
on stdout. Log lines come as ``{"log": [[uid, line], …]}``. The process ends when stdin does, that
is with its parent.
"""

import argparse
import asyncio
import ctypes
import dataclasses
import functools
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from modelserve.adapters import precedence
from modelserve.adapters.clock import SystemClock
from modelserve.engines import launch
from modelserve.errors import InputError, ModelServeError, SetUpError
from servelab.engine import addresses, assembly, metering
from servelab.engine.admin import documents
from servelab.engine.admin.control import Control
from servelab.engine.assembly import EngineSpec
from servelab.engine.httpd import loops
from servelab.engine.pool import LINE_LIMIT_BYTES
from servelab.engine.server import EngineServer

LOGGER = logging.getLogger(__name__)
LOG_FLUSH_REAL_S = 0.02
# The parts of an engine, 200 kB, refer to each other, and the collector seldom comes by itself (see
# ``httpd.loops``): it is called for so many, or a quarter of those that live, which it looks at.
COLLECTED_TOGETHER = 32
_PR_SET_PDEATHSIG = 1


class Hosted:
    """One engine: its socket is bound from the beginning, the server comes with ``open`` or, for
    engines that refuse connections while they load, with ``serve``.
    """

    def __init__(
        self, spec: EngineSpec, sock: socket.socket, control: Control, began_s: float
    ) -> None:
        self.spec = spec
        self.began_s = began_s  # when its container started
        self.control = control
        self.sock = sock
        self.server: EngineServer | None = None
        self.meter: metering.Meter | None = None
        self.serves = False
        self.others: dict[int, str] = {}
        # Held while it begins to listen: it is not to be taken away in the middle of that.
        self.starting = asyncio.Lock()


class Worker:
    """The engines of this process, by pod UID."""

    def __init__(self, time_scale: float, host: str, send: Callable[[object], None]) -> None:
        self._clock = SystemClock(time_scale)
        self._host = host
        self._send = send
        self._engines: dict[str, Hosted] = {}
        self._lines: list[tuple[str, str]] = []
        self._ended = 0

    async def handle(self, command: Mapping[str, Any]) -> None:
        """Carry out one command and answer it."""
        operations: Mapping[str, Callable[[Mapping[str, Any]], Awaitable[object]]] = {
            "reserve": self._reserve,
            "open": self._open,
            "serve": self._serve,
            "drain": self._drain,
            "kill": self._kill,
            "disturb": self._disturb,
            "loads": self._loads,
        }
        try:
            result = await operations[command["op"]](command)
        except ModelServeError as error:
            kind = "input" if isinstance(error, InputError) else "other"
            self._answer(command["id"], {"error": str(error), "kind": kind})
        except Exception as error:
            # Whatever goes wrong with one engine must not take the others along.
            LOGGER.exception("%s of %s failed", command["op"], command["uid"])
            self._answer(command["id"], {"error": repr(error), "kind": "other"})
        else:
            self._answer(command["id"], {"result": result})

    async def close(self) -> None:
        """Stop all engines."""
        for uid in list(self._engines):
            await self._kill({"uid": uid})

    async def _reserve(self, command: Mapping[str, Any]) -> str:
        spec = spec_of(
            command["container"], command["annotations"], command["gpu"], command["seed"]
        )
        sock = self._bound()
        await self._kill(command)
        self._engines[command["uid"]] = Hosted(
            spec, sock, Control(self._clock), self._clock.now_s()
        )
        return addresses.joined(*sock.getsockname()[:2])

    def _bound(self) -> socket.socket:
        # No SO_REUSEADDR: a second socket must not be able to bind the same port before this one
        # listens.
        sock = socket.socket(socket.AF_INET6 if ":" in self._host else socket.AF_INET)
        try:
            sock.bind((self._host, 0))
        except OSError as error:
            sock.close()
            raise SetUpError(f"cannot bind a port on {self._host}: {error.strerror}") from error
        sock.setblocking(False)
        return sock

    async def _open(self, command: Mapping[str, Any]) -> None:
        """Listen before the engine is ready."""
        engine = self._reserved(command["uid"])
        async with engine.starting:
            if engine.server is None:
                engine.server = self._server(command["uid"], engine)
                await engine.server.listen(engine.sock)

    async def _serve(self, command: Mapping[str, Any]) -> Mapping[int, str]:
        """Be ready; addresses of the ports that the real engine has beside its main one."""
        engine = self._reserved(command["uid"])
        async with engine.starting:
            if not engine.serves:
                engine.serves = True
                await self._listen(command["uid"], engine)
        return engine.others

    async def _listen(self, uid: str, engine: Hosted) -> None:
        if engine.server is None:
            engine.server = self._server(uid, engine)
        for port in engine.server.other_ports:
            sock = self._bound()
            engine.others[port] = addresses.joined(*sock.getsockname()[:2])
            await engine.server.start_other(port, sock)
        await engine.server.start(engine.sock)

    async def _disturb(self, command: Mapping[str, Any]) -> None:
        """Let it answer nothing, and be slow, as asked; or be well again."""
        found: dict[str, documents.Timed] = {}
        if command["hung"]:
            found["hang"] = documents.Hang(health="silent")
        if command["factor"] != 1:
            found["slow"] = documents.Slow(factor=float(command["factor"]))
        self._reserved(command["uid"]).control.put_faults(found, replace=True)

    def _reserved(self, uid: str) -> Hosted:
        engine = self._engines.get(uid)
        if engine is None:
            raise InputError(f"no engine is reserved for pod {uid}")
        return engine

    def _server(self, uid: str, engine: Hosted) -> EngineServer:
        server = EngineServer(
            engine.spec,
            self._clock,
            lambda line: self._log(uid, line),
            control=engine.control,
            began_s=engine.began_s,
        )
        engine.meter = metering.Meter(server.load)
        server.driver.on_sent = engine.meter.observe
        return server

    async def _loads(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """What each engine that serves has done so far."""
        loads = {}
        for uid, engine in self._engines.items():
            if engine.server is not None and engine.meter is not None:
                engine.server.settle()
                loads[uid] = engine.meter.read().to_json()
        return loads

    async def _drain(self, command: Mapping[str, Any]) -> bool:
        engine = self._engines.get(command["uid"])
        if engine is None or engine.server is None:
            await self._kill(command)
            return True
        finished = await engine.server.drain(command["grace_real_s"])
        self._collect()
        if self._engines.get(command["uid"]) is engine:
            del self._engines[command["uid"]]
        return finished

    async def _kill(self, command: Mapping[str, Any]) -> None:
        engine = self._engines.pop(command["uid"], None)
        if engine is None:
            return
        async with engine.starting:
            if engine.server is not None:
                await engine.server.kill()
            engine.sock.close()
        self._collect()

    def _collect(self) -> None:
        self._ended += 1
        if self._ended >= max(COLLECTED_TOGETHER, len(self._engines) // 4):
            self._ended = 0
            # Once the frames that hold the last of them are gone.
            asyncio.get_running_loop().call_soon(gc.collect)

    def _log(self, uid: str, line: str) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(LOG_FLUSH_REAL_S, self._flush_log)
        self._lines.append((uid, line))

    def _flush_log(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self._send({"log": lines})

    def _answer(self, number: int, answer: Mapping[str, object]) -> None:
        """Answer a command, after the log lines that came before."""
        self._flush_log()
        self._send({"id": number, **answer})


def spec_of(
    container: Mapping[str, Any], annotations: Mapping[str, str], gpu: str, seed: int
) -> EngineSpec:
    """``assembly.build``, worked out once for all pods of a Deployment."""
    return dataclasses.replace(_spec(launch.written(container, annotations), gpu), seed=seed)


@functools.lru_cache(maxsize=256)
def _spec(text: str, gpu: str) -> EngineSpec:
    container, annotations = json.loads(text)
    return assembly.build(container, annotations, gpu, seed=0)


async def run(time_scale: float, host: str) -> None:
    """Serve commands until stdin ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=LINE_LIMIT_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, sys.stdout)

    def send(message: object) -> None:
        transport.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    worker = Worker(time_scale, host, send)
    tasks: set[asyncio.Task[None]] = set()
    send({"ready": os.getpid()})
    while line := await reader.readline():
        task = asyncio.create_task(worker.handle(json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await worker.close()


def die_with_parent() -> None:
    """Ask Linux to kill this process when its parent goes; stdin's end covers other systems."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Entry of ``python -m servelab.engine.worker``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--time-scale", type=float, default=1.0)
    parser.add_argument("--host", default="127.0.0.1")
    arguments = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO)
    die_with_parent()
    precedence.give_back()
    loops.run(run(arguments.time_scale, arguments.host))


if __name__ == "__main__":
    main()
