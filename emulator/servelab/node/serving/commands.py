"""Exec, run and attach: commands in containers, answered by the emulated shell.

No process of this machine is ever started.
"""

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from aiohttp import web

from modelserve import errors
from servelab.node.pods import journal
from servelab.node.serving import channels, dialogue, entering, following, hosting, inspecting
from servelab.node.shell import inside, programs, running, terminal

POD_MISSING = "pod does not exist"
# Between the two looks that rates need; the real nvidia-smi takes longer.
WINDOW_REAL_S = 0.2
# What a shell says of a program that Ctrl-C ended.
INTERRUPTED = 130
# What a program in a container may take in.
MOST_INPUT_BYTES = 1 << 20
Work = Callable[[channels.Channels, hosting.Found, channels.Options], Coroutine[Any, Any, None]]


class Commands:
    """The handlers, for all nodes."""

    def __init__(self, inspector: inspecting.Inspector) -> None:
        self._inspector = inspector

    async def exec(self, request: web.Request) -> web.StreamResponse:
        """``/exec/{namespace}/{pod}/{container}?command=…``."""
        command = request.query.getall("command", [])
        return await self._entered(
            request, lambda streams, found, wanted: self._exec(streams, found, command, wanted)
        )

    async def attach(self, request: web.Request) -> web.StreamResponse:
        """``/attach/{namespace}/{pod}/{container}``: what it writes from now on."""
        return await self._entered(
            request, lambda streams, found, wanted: self._attach(streams, found)
        )

    async def _entered(self, request: web.Request, work: Work) -> web.StreamResponse:
        """Work in the container that is asked for, over the streams that are."""
        try:
            wanted = channels.options(request.query)
        except errors.InputError as error:
            return web.Response(status=400, text=str(error))
        found = self._find(request)
        if isinstance(found, web.Response):
            return found
        streams = await self._streams(request, wanted)
        if isinstance(streams, web.Response):
            return streams
        return await self._until_gone(streams, work(streams, found, wanted))

    async def run(self, request: web.Request) -> web.StreamResponse:
        """``/run/{namespace}/{pod}/{container}?cmd=…``: the output as a whole."""
        found = self._find(request)
        if isinstance(found, web.Response):
            return found
        command = request.query.get("cmd", "").split(" ")
        seen = await self.look(found, " ".join(command))
        try:
            done = running.run(seen, command)
        except running.NotStarted as error:
            return web.Response(status=500, text=_not_started(found, error))
        text = done.out + done.err
        if done.code:
            told = f"command '{' '.join(command)}' exited with {done.code}: {text}"
            return web.Response(status=500, text=told)
        return web.Response(text=text, content_type="application/json")

    def _find(self, request: web.Request) -> hosting.Found | web.Response:
        where = request.match_info
        served = self._inspector.host.lookup(where["namespace"], where["pod"])
        if served is None or where.get("uid", served.pod.uid) != served.pod.uid:
            return web.Response(status=404, text=POD_MISSING)
        found = self._inspector.find(served, where["container"])
        if found is None:
            text = f'container not found ("{where["container"]}")'
            return web.Response(status=500, text=text)
        return found

    async def _streams(
        self, request: web.Request, wanted: channels.Options
    ) -> channels.Channels | web.Response:
        try:
            return await channels.of(request, wanted)
        except channels.NoStreams as error:
            # The connection is no HTTP any more, and closed: this reaches nobody.
            return web.Response(status=500, text=str(error))

    async def _until_gone(
        self, streams: channels.Channels, work: Coroutine[Any, Any, None]
    ) -> web.StreamResponse:
        """Work until it is done or the client has left."""
        task, gone = asyncio.create_task(work), asyncio.create_task(streams.gone())
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in (task, gone):
                each.cancel()
            results = await asyncio.gather(task, gone, return_exceptions=True)
        failed = results[0]
        if isinstance(failed, Exception) and not isinstance(failed, ConnectionResetError):
            raise failed
        return web.Response()

    async def _exec(
        self,
        streams: channels.Channels,
        found: hosting.Found,
        command: Sequence[str],
        wanted: channels.Options,
    ) -> None:
        seen = await self.look(found, "")
        try:
            name = running.check(seen, command)
        except running.NotStarted as error:
            why = f"error executing command in container: {_not_started(found, error)}"
            await streams.finish(channels.failure(why))
            return
        if name in programs.SHELLS and wanted.stdin and running.reads_lines(command):
            shell = running.Shell(seen, name)

            async def run(line: str) -> None:
                shell.see(await self.look(found, line))
                await self.write(streams, shell.run(line), tty=wanted.tty)

            talk = dialogue.Dialogue(streams, shell, run)
            await (talk.at_terminal() if wanted.tty else talk.through_pipe())
            code = shell.code
        else:
            code = await self._to_the_end(streams, found, command, wanted)
        await streams.finish(channels.ended(command, code))

    async def _to_the_end(
        self,
        streams: channels.Channels,
        found: hosting.Found,
        command: Sequence[str],
        wanted: channels.Options,
    ) -> int:
        """Run a program with its input, if it reads any; its exit code."""
        text: str | None = ""
        if wanted.stdin and not wanted.tty and running.reads_input(command):
            if command[0] == "cat":
                return await _copied(streams)
            text = await _all(streams)
        if text is None:
            return dialogue.OUT_OF_MEMORY
        return await self._program(streams, found, command, text, wanted)

    async def _program(
        self,
        streams: channels.Channels,
        found: hosting.Found,
        command: Sequence[str],
        text: str,
        wanted: channels.Options,
    ) -> int:
        """Run a program, again and again if it is to; its exit code."""
        every_s, once = running.repeated(command)
        while True:
            done = running.run(await self.look(found, " ".join(once)), once, text)
            await self.write(streams, done, tty=wanted.tty)
            if every_s is None or done.code:
                return done.code
            if await self._interrupted(streams, every_s, wanted):
                return INTERRUPTED

    async def _interrupted(
        self, streams: channels.Channels, seconds: float, wanted: channels.Options
    ) -> bool:
        """Wait so long; whether Ctrl-C was pressed meanwhile."""
        pause = asyncio.ensure_future(self._inspector.host.sleep_real(seconds))
        typing = wanted.stdin and wanted.tty
        try:
            while typing and not pause.done():
                key = asyncio.ensure_future(streams.read())
                await asyncio.wait((pause, key), return_when=asyncio.FIRST_COMPLETED)
                if not key.done():
                    key.cancel()
                elif terminal.INTERRUPT in (chunk := key.result().decode("utf-8", "replace")):
                    return True
                else:
                    typing = bool(chunk)
            await pause
        finally:
            pause.cancel()
        return False

    async def _attach(self, streams: channels.Channels, found: hosting.Found) -> None:
        logs = found.served.journals.setdefault(found.container.name, journal.Journal())
        with following.Follower(logs) as follower:
            while (line := await follower.next()) is not None:
                await streams.out(line.render(timestamps=False).encode())
        await streams.finish(channels.ended((), 0))

    async def write(self, streams: channels.Channels, done: inside.Result, *, tty: bool) -> None:
        """Send what a command wrote, and sleep as long as it did."""
        if tty:
            await streams.out(terminal.newlines(done.out + done.err).encode())
        else:
            await streams.out(done.out.encode())
            await streams.err(done.err.encode())
        if done.pause_s:
            await self._inspector.host.sleep_real(done.pause_s)

    async def look(self, found: hosting.Found, words: str) -> inside.Inside:
        """The container as it is now, for a command that begins.

        Where ``words`` ask for rates it takes a while, and they are of that while.
        """
        inspector = self._inspector
        # A long script must let others have their turn.
        await inspector.host.sleep_real(0)
        await inspector.refresh()
        if programs.MEASURES in words:
            await inspector.host.sleep_real(WINDOW_REAL_S)
            await inspector.refresh()
        return entering.view(found, inspector)


async def _all(streams: channels.Channels) -> str | None:
    """The whole input; None if it is more than a container would have room for."""
    chunks, size = [], 0
    while chunk := await streams.read():
        chunks.append(chunk)
        size += len(chunk)
        if size > MOST_INPUT_BYTES:
            return None
    return b"".join(chunks).decode("utf-8", "replace")


async def _copied(streams: channels.Channels) -> int:
    """``cat`` without a file: the input is the output."""
    while chunk := await streams.read():
        await streams.out(chunk)
    return 0


def _not_started(found: hosting.Found, error: running.NotStarted) -> str:
    """What containerd says when runc cannot start a command."""
    pod = found.served.pod
    exec_id = hashlib.sha256(f"{pod.uid}/{error}".encode()).hexdigest()
    return (
        f'failed to exec in container: failed to start exec "{exec_id}": OCI runtime exec failed: '
        f"exec failed: unable to start container process: {error}"
    )
