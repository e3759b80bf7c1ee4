"""The process that bench ``engine`` measures: one engine with equal steps, over the real server.

It prints ``{"port"}``. A line on stdin makes it print how late tokens were since the last one, if
there was one; it ends with stdin. Lateness is from the end of a token's step until the answers'
bytes are written, one after the other.
"""

import argparse
import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import Sequence

from modelserve.adapters.clock import SystemClock
from modelserve.ports import Clock
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import Output
from servelab.engine.httpd import loops
from servelab.engine.server import EngineServer

MODEL = "m"
MAX_MODEL_TOKENS = 8192
# Never the limit: what is measured is the way from the core to the client. As many blocks as an
# 8B model has on an H100; a prefix cache grows until all have been used.
KV_BLOCKS = 32_768
BATCHED_TOKENS = 1_000_000
BIN_S = 0.0001
BINS = 20_000


class Lateness:
    """A histogram of lateness, so that memory stays the same however long it runs."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts = [0] * BINS
        self._flushed_s: list[float] = []

    def flushed(self) -> None:
        """The bytes of one answer are out."""
        self._flushed_s.append(self._clock.now_s())

    def sent(self, outputs: Sequence[Output]) -> None:
        """The bytes of these outputs are out: those of their tokens in turn."""
        flushed_s, self._flushed_s = self._flushed_s, []
        for output in outputs:
            for at_s in output.times_s:
                for sent_s in flushed_s[: len(output.ids)]:
                    self._counts[min(BINS - 1, int((sent_s - at_s) / BIN_S))] += 1

    def take(self, q: float) -> dict[str, float]:
        """The quantile in seconds and the number of tokens, since the last call."""
        counts, self._counts = self._counts, [0] * BINS
        total, seen = sum(counts), 0
        for place, count in enumerate(counts):
            seen += count
            if seen and seen >= q * total:
                return {"late_s": (place + 1) * BIN_S, "tokens": total}
        return {"late_s": float("nan"), "tokens": 0}


async def serve(step_s: float, slots: int, batched_tokens: int, *, caching: bool) -> None:
    """Serve until stdin ends."""
    clock = SystemClock()
    config = CoreConfig(
        *(slots, batched_tokens, MAX_MODEL_TOKENS, KV_BLOCKS), prefix_caching=caching
    )
    server = EngineServer(EngineSpec(MODEL, MODEL, config, SteadyLaw(step_s), 0.9, 1), clock)
    late = Lateness(clock)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    _say({"port": sock.getsockname()[1]})
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while await reader.readline():
        # Not before: it takes some per cent of the time.
        server.driver.on_flushed, server.driver.on_sent = late.flushed, late.sent
        _say(late.take(0.99))
    await server.kill()


def _say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Entry of ``python -m servelab.bench.enginehost``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--step-seconds", type=float, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--batched-tokens", type=int, default=BATCHED_TOKENS)
    parser.add_argument("--no-prefix-caching", action="store_false", dest="caching")
    given = parser.parse_args()
    work = serve(given.step_seconds, given.slots, given.batched_tokens, caching=given.caching)
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C of the bench, which says so itself
        loops.run(work)


if __name__ == "__main__":
    main()
