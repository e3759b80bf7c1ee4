"""Bench ``engine``: one mock engine's process under load from ``wrk``, on the same cores.

All steps of the engine are equal and as short as named here, so that its model of time is not the
limit for answers; everything else is what ``servelab engine`` runs. A chunk is one event with one
token of one stream.
"""

import asyncio
import contextlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent import futures

from modelserve import errors
from servelab.bench import figure, machine, neighbours, soak, streams, wrk
from servelab.bench.registry import Say

DURATION_S = 6.0
SETTLE_S = 3.0

PLAIN_STEP_S = 0.001
PLAIN_TOKENS = 4
PLAIN_CONNECTIONS = 128

CHUNK_TOKENS = 64
CHUNK_CONNECTIONS = 400
CHUNK_STEP_S = 0.003

TIMED_TOKENS = range(50, 350, 5)
TIMED_CONNECTIONS = 128
TIMED_LOAD = 0.5  # of the chunks that it can send

OPEN_STREAMS = 2000
OPEN_TOKENS = 20
OPEN_STEP_S = 0.5

NEIGHBOUR_STEP_S = 0.005
# A step's, of vLLM on an H100: prompts of megabytes are taken in many steps, as they are there.
NEIGHBOUR_BATCHED_TOKENS = 8192
SOAK_MIN = 0.5

PLAIN_GOAL_PER_S = 10_000
CHUNKS_GOAL_PER_S = 80_000
TIMING_GOAL_S = 0.005


class Host:
    """The engine's process."""

    def __init__(
        self, step_s: float, slots: int, *, caching: bool = True, batched_tokens: int | None = None
    ) -> None:
        """``caching``: with a prefix cache, as an engine has of itself.

        ``batched_tokens``: the most of a step; None: more than there ever are.
        """
        command = [sys.executable, "-P", "-m", "servelab.bench.enginehost"]
        command += ["--step-seconds", repr(step_s), "--slots", str(slots)]
        command += [] if caching else ["--no-prefix-caching"]
        command += [] if batched_tokens is None else ["--batched-tokens", str(batched_tokens)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.port = int(self._read()["port"])

    @property
    def rss_bytes(self) -> int:
        """What it holds in memory."""
        return machine.usage(self._process.pid).rss_bytes

    @property
    def cpu_s(self) -> float:
        """Processor seconds so far."""
        return machine.usage(self._process.pid).cpu_s

    def lateness(self) -> dict[str, float]:
        """The 99th percentile of tokens' lateness since the last call, and their number."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise errors.SetUpError("the engine's process ended: see its output")
        found: dict[str, float] = json.loads(line)
        return found


@contextlib.contextmanager
def hosted(
    step_s: float, slots: int, *, caching: bool = True, batched_tokens: int | None = None
) -> Iterator[Host]:
    """An engine's process, ended in the end."""
    host = Host(step_s, slots, caching=caching, batched_tokens=batched_tokens)
    try:
        yield host
    finally:
        host.close()


def run(
    samples: int | None,
    say: Say,
    duration_s: float | None = None,
    soak_min: float = SOAK_MIN,
) -> Sequence[figure.Figure]:
    """Each load for ``duration_s``; of several ``samples`` the medians, and between what they lie.

    ``soak_min``: how long to watch the memory under load. Raises SetUpError without ``wrk``.
    """
    wrk.check()
    rounds = [_once(duration_s or DURATION_S, say) for _ in range(samples or 1)]
    figures = [figure.median(each) for each in zip(*rounds, strict=True)]
    return [*figures, *_soak(soak_min * 60, say)]


def _once(duration_s: float, say: Say) -> Sequence[figure.Figure]:
    plain = [*_plain(duration_s, say), *_plain(duration_s, say, caching=False)]
    chunks = _chunks(duration_s, say)
    timing = _timing(chunks[0].value, duration_s, say)
    return (*plain, *chunks, timing, *_open(say), _neighbour(say))


def _plain(duration_s: float, say: Say, *, caching: bool = True) -> Sequence[figure.Figure]:
    """Without a prefix cache too: other simulators have none, or leave it off."""
    kind = "plain_requests" if caching else "plain_requests_uncached"
    say(f"short answers, {'with' if caching else 'without'} a prefix cache")
    with hosted(PLAIN_STEP_S, PLAIN_CONNECTIONS, caching=caching) as host:
        began_s = host.cpu_s
        bodies = wrk.chats([PLAIN_TOKENS], stream=False)
        found = wrk.load(host.port, bodies, PLAIN_CONNECTIONS, duration_s)
        used_s = host.cpu_s - began_s
    return _rates(kind, found.requests, found.duration_s, used_s, PLAIN_GOAL_PER_S)


def _chunks(duration_s: float, say: Say) -> Sequence[figure.Figure]:
    say("streams, as fast as it can")
    with hosted(CHUNK_STEP_S, CHUNK_CONNECTIONS) as host:
        began_s = host.cpu_s
        bodies = wrk.chats([CHUNK_TOKENS], stream=True)
        found = wrk.load(host.port, bodies, CHUNK_CONNECTIONS, duration_s)
        used_s = host.cpu_s - began_s
    chunks = found.requests * CHUNK_TOKENS
    return _rates("chunks", chunks, found.duration_s, used_s, CHUNKS_GOAL_PER_S)


def _rates(
    what: str, count: int, duration_s: float, used_s: float, goal: float
) -> Sequence[figure.Figure]:
    """By time, and by processor time of the engine: where others run beside, the two differ."""
    return (
        figure.Figure(f"{what}_per_s", count / duration_s, "1/s", "higher", goal, count),
        figure.Figure(f"{what}_per_cpu_s", count / used_s, "1/s", "higher", None, count),
    )


def _timing(chunks_per_s: float, duration_s: float, say: Say) -> figure.Figure:
    say(f"when tokens are sent, at {TIMED_LOAD:.0%} of that")
    step_s = TIMED_CONNECTIONS / (TIMED_LOAD * chunks_per_s)
    with hosted(step_s, TIMED_CONNECTIONS) as host:
        # Of all lengths: else all streams would end, and all new requests come, at the same time.
        bodies = wrk.chats(TIMED_TOKENS, stream=True)
        arguments = (host.port, bodies, TIMED_CONNECTIONS, SETTLE_S + duration_s)
        with futures.ThreadPoolExecutor(1) as pool:
            loading = pool.submit(wrk.load, *arguments)
            time.sleep(SETTLE_S)
            host.lateness()
            loading.result()
        found = host.lateness()
    value, samples = found["late_s"], int(found["tokens"])
    return figure.Figure("token_timing_error_p99", value, "s", "lower", TIMING_GOAL_S, samples)


def _open(say: Say) -> Sequence[figure.Figure]:
    say(f"{OPEN_STREAMS} open streams")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with hosted(OPEN_STEP_S, OPEN_STREAMS) as host:
        found = asyncio.run(streams.hold(host.port, OPEN_STREAMS, OPEN_TOKENS))
        rss_bytes = host.rss_bytes
    held = min(found.most_open, found.whole)
    return (
        figure.Figure("rss_bytes", rss_bytes, "bytes"),
        figure.Figure("open_streams", held, "streams", "higher", OPEN_STREAMS, OPEN_STREAMS),
    )


def _neighbour(say: Say) -> figure.Figure:
    say("a stream beside requests of megabytes")
    tokens = NEIGHBOUR_BATCHED_TOKENS
    with hosted(NEIGHBOUR_STEP_S, CHUNK_CONNECTIONS, batched_tokens=tokens) as host:
        longest_s = asyncio.run(neighbours.longest_wait_s(host.port))
    late_s = max(0.0, longest_s - NEIGHBOUR_STEP_S)
    return figure.Figure("stall_by_large_requests", late_s, "s", samples=neighbours.TIMES)


def _soak(duration_s: float, say: Say) -> Sequence[figure.Figure]:
    say(f"memory over {duration_s:.0f} s")
    with hosted(PLAIN_STEP_S, CHUNK_CONNECTIONS) as host:
        return soak.run(host.port, lambda: host.rss_bytes, duration_s)
