"""Memory of an engine's process under a mix of requests: whether it grows, and by how much.

Half of the requests are short answers and half are streams; beside them clients come for one
request each, and others leave amid their stream.
"""

import asyncio
import dataclasses
import itertools
import math
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent import futures
from dataclasses import dataclass

from servelab.bench import figure, streams, wrk

TOKENS = 16
CONNECTIONS = 64
SAMPLE_S = 0.5
# Under load before memory is watched: the prefix cache fills up, and the allocator finds its size.
WARM_UP_S = 20.0
# Means over so many parts of the time are told apart by chance alone; neighbours in time are not.
PARTS = 10


@dataclass(frozen=True, slots=True)
class Growth:
    """Bytes a second, and the standard error of that."""

    bytes_per_s: float
    error_bytes_per_s: float


def growth(samples: Sequence[tuple[float, float]]) -> Growth:
    """Of a memory with samples (seconds, bytes): a line through the means of parts of the time."""
    size = max(1, len(samples) // PARTS)
    parts = [samples[at : at + size] for at in range(0, len(samples) - size + 1, size)]
    times_s = [statistics.fmean(at_s for at_s, _ in part) for part in parts]
    sizes = [statistics.fmean(size for _, size in part) for part in parts]
    line = statistics.linear_regression(times_s, sizes)
    if len(parts) < 3:
        return Growth(line.slope, math.nan)
    left = sum(
        (size - line.intercept - line.slope * at_s) ** 2
        for at_s, size in zip(times_s, sizes, strict=True)
    )
    spread = statistics.pvariance(times_s) * len(parts)
    return Growth(line.slope, math.sqrt(left / (len(parts) - 2) / spread))


def run(port: int, rss_bytes: Callable[[], int], duration_s: float) -> Sequence[figure.Figure]:
    """Load the engine at the port until it is warm, then so long, and watch ``rss_bytes``."""
    duration_s += WARM_UP_S
    with futures.ThreadPoolExecutor(2) as pool:
        began_s = time.monotonic()
        loading = pool.submit(wrk.load, port, mixed(), CONNECTIONS, duration_s)
        visiting = pool.submit(asyncio.run, streams.visits(port, TOKENS, duration_s))
        samples = []
        while not loading.done():
            samples.append((time.monotonic() - began_s, rss_bytes()))
            time.sleep(SAMPLE_S)
        requests = loading.result().requests + visiting.result()
    warm = [each for each in samples if each[0] >= WARM_UP_S]
    return _figures(warm, requests, requests / duration_s)


def mixed() -> Sequence[dict[str, object]]:
    """Short answers and streams in turns."""
    both = [
        wrk.chats([TOKENS], stream=stream, prompts=wrk.PROMPTS // 2) for stream in (False, True)
    ]
    return list(itertools.chain.from_iterable(zip(*both, strict=True)))


def _figures(
    warm: Sequence[tuple[float, float]], requests: int, requests_per_s: float
) -> Sequence[figure.Figure]:
    found = growth(warm)
    unit = "bytes/request"
    figures = (
        figure.Figure("soak_rss_start_bytes", warm[0][1], "bytes"),
        figure.Figure("soak_rss_end_bytes", warm[-1][1], "bytes"),
        figure.Figure("rss_growth_bytes_per_request", found.bytes_per_s / requests_per_s, unit),
        figure.Figure("rss_growth_error", found.error_bytes_per_s / requests_per_s, unit),
    )
    return [dataclasses.replace(each, samples=requests) for each in figures]
