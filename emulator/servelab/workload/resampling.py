"""Another draw of a trace: blocks of it, put one after the other. Pure.

What a policy comes to on one trace hangs on a handful of bursts. The circular block bootstrap
(Politis and Romano, 1992) draws as many hours like it as are wanted: each block begins at any
instant of the trace, which starts again behind its end, so that every instant is as likely, and
within a block arrivals are as they were.
"""

import bisect
import math
import random
from collections.abc import Iterable, Iterator

from modelserve import errors
from servelab.workload import arrivals

Arrival = arrivals.Arrival


def blocks(
    trace: Iterable[Arrival],
    length_s: float,
    rng: random.Random,
    name: str,
    seconds: float | None = None,
) -> Iterator[Arrival]:
    """As long as the trace, or as its first ``seconds``, of blocks of ``length_s``.

    All that is drawn from is kept in memory. Raises InputError for what is no longer than a block.
    """
    given, whole_s = _first(trace, math.inf if seconds is None else seconds)
    if said := _too_short(whole_s, length_s, name):
        raise errors.InputError(said)
    times_s = [each.at_s for each in given]
    begun_s = 0.0
    while begun_s < whole_s:
        taken_s = min(length_s, whole_s - begun_s)
        yield from _block(given, times_s, rng.random() * whole_s, taken_s, whole_s, begun_s)
        begun_s += length_s


def obstacle(
    trace: Iterable[Arrival], length_s: float, name: str, seconds: float | None = None
) -> str:
    """What keeps such blocks from being drawn; empty if nothing. Reads no more than it must."""
    read = _until_after(trace, length_s)
    return _too_short(_first(read, math.inf if seconds is None else seconds)[1], length_s, name)


def _too_short(whole_s: float, length_s: float, name: str) -> str:
    if whole_s > length_s:
        return ""
    return (
        f"{name} lasts {whole_s:g} s, too short to draw blocks of {length_s:g} s from: "
        "lower resampleSeconds, or leave it out"
    )


def _until_after(trace: Iterable[Arrival], at_s: float) -> Iterator[Arrival]:
    """Up to the first that comes later than that."""
    for each in trace:
        yield each
        if each.at_s > at_s:
            return


def _first(trace: Iterable[Arrival], seconds: float) -> tuple[list[Arrival], float]:
    """The arrivals of the first ``seconds``, and how long that is."""
    given: list[Arrival] = []
    for each in trace:
        if each.at_s >= seconds:
            return given, seconds
        given.append(each)
    # Behind the last request as much time as there is between two on average.
    whole_s = given[-1].at_s * len(given) / (len(given) - 1) if len(given) > 1 else 0.0
    return given, min(whole_s, seconds)


def _block(
    given: list[Arrival],
    times_s: list[float],
    from_s: float,
    length_s: float,
    whole_s: float,
    begun_s: float,
) -> Iterator[Arrival]:
    """What came in ``length_s`` from ``from_s`` on, as if that were ``begun_s``."""
    at = bisect.bisect_left(times_s, from_s)
    for number in range(len(given)):
        rounds, place = divmod(at + number, len(given))
        one = given[place]
        after_s = one.at_s + rounds * whole_s - from_s
        if after_s >= length_s:
            return
        yield Arrival(begun_s + after_s, one.input_tokens, one.output_tokens)
