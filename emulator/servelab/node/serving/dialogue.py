"""A shell that is fed line by line, from a keyboard or through a pipe."""

import codecs
from collections.abc import Awaitable, Callable

from servelab.node.serving import channels
from servelab.node.shell import running, terminal

MOST_LINE_CHARACTERS = 1 << 16
# How a program ends that wants more memory than it has.
OUT_OF_MEMORY = 137


class Dialogue:
    """One shell's. ``run`` runs a line and sends what it writes."""

    def __init__(
        self,
        streams: channels.Channels,
        shell: running.Shell,
        run: Callable[[str], Awaitable[None]],
    ) -> None:
        self._streams = streams
        self._shell = shell
        self._run_line = run
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def at_terminal(self) -> None:
        """With a prompt, and what is typed echoed."""
        keyboard = terminal.Terminal()
        await self._streams.out(self._shell.prompt.encode())
        while not self._shell.ended and (chunk := await self._streams.read()):
            typed = keyboard.type(self._decoder.decode(chunk))
            await self._streams.out(typed.echo.encode())
            for line in typed.lines:
                if line is not None:
                    await self._run(line)
                if self._shell.ended:
                    return
                await self._streams.out(self._shell.prompt.encode())
            if typed.ended:
                await self._streams.out(b"\r\n")
                return

    async def through_pipe(self) -> None:
        """As a script that comes bit by bit."""
        rest = ""
        while not self._shell.ended and (chunk := await self._streams.read()):
            *lines, rest = (rest + self._decoder.decode(chunk)).split("\n")
            if len(rest) > MOST_LINE_CHARACTERS:
                self._shell.code = OUT_OF_MEMORY
                return
            for line in lines:
                if not self._shell.ended:
                    await self._run(line)
        if rest and not self._shell.ended:
            await self._run(rest)

    async def _run(self, line: str) -> None:
        if line.strip():
            await self._run_line(line)
