"""From a scenario's traffic to requests: open streams merged in order of time, and closed loops."""

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from servelab.sim import scenario
from servelab.workload import arrivals, generators, tracefile

Lines = Callable[[str], Iterable[str]]


@dataclass(slots=True)
class Client:
    """One client of a closed loop: sends its next request when it has its answer, until the end."""

    prompts: generators.Lengths
    answers: generators.Lengths
    think_s: float
    until_s: float
    rng: random.Random

    def next_arrival(self, now_s: float) -> arrivals.Arrival | None:
        """What it sends next; None when its time is over."""
        at_s = now_s + self.think_s
        if at_s >= self.until_s:
            return None
        return arrivals.Arrival(at_s, self.prompts.draw(self.rng), self.answers.draw(self.rng))


@dataclass(frozen=True, slots=True)
class Sources:
    """All traffic of one model."""

    stream: Iterator[arrivals.Arrival]
    clients: Sequence[tuple[float, Client]]  # and when it begins


def of(model: scenario.SimulatedModel, seed: int, lines: Lines) -> Sources:
    """The model's traffic. ``lines`` opens a trace by its name; lengths are cut to fit the model.

    Raises InputError, also while it is read, for a trace that cannot be.
    """
    streams: list[Iterator[arrivals.Arrival]] = []
    clients: list[tuple[float, Client]] = []
    for number, one in enumerate(model.traffic):
        name = f"{seed}/{model.name}/{number}"
        if one.closed is not None:
            clients += _clients(one, one.closed, name)
        else:
            streams.append(_shifted(_stream(one, name, lines), one.start_seconds))
    merged = heapq.merge(*streams, key=lambda each: each.at_s) if len(streams) != 1 else streams[0]
    return Sources(arrivals.limited(merged, model.spec.engine.max_model_length), clients)


def open_trace(name: str) -> Iterable[str]:
    """A trace of the package by its name. Raises UnknownName."""
    return tracefile.packaged(name)


def _shifted(stream: Iterator[arrivals.Arrival], by_s: float) -> Iterator[arrivals.Arrival]:
    if not by_s:
        return stream
    return (arrivals.Arrival(a.at_s + by_s, a.input_tokens, a.output_tokens) for a in stream)


def _stream(one: scenario.Traffic, name: str, lines: Lines) -> Iterator[arrivals.Arrival]:
    if one.trace is not None:
        read = tracefile.read(lines(one.trace), one.trace)
        return read if one.seconds is None else arrivals.window(read, one.seconds)
    prompts, answers = _lengths(one.input), _lengths(one.output)
    times_s = _times_s(one, random.Random(f"{name}/times"))
    return generators.with_lengths(times_s, prompts, answers, random.Random(f"{name}/lengths"))


def _times_s(one: scenario.Traffic, rng: random.Random) -> Iterator[float]:
    if (law := one.poisson) is not None:
        return generators.poisson(law.per_second, law.seconds, rng)
    if (even := one.steady) is not None:
        return generators.steady(even.per_second, even.seconds)
    if (bursty := one.gamma) is not None:
        return generators.gamma(bursty.per_second, bursty.cv, bursty.seconds, rng)
    if (spells := one.on_off) is not None:
        return generators.on_off(
            spells.per_second, spells.on_seconds, spells.off_seconds, spells.seconds, rng
        )
    ramp = one.ramp
    assert ramp is not None, "a scenario's traffic has exactly one kind"
    return generators.ramp(ramp.from_per_second, ramp.to_per_second, ramp.seconds, rng)


def _clients(
    one: scenario.Traffic, loop: scenario.Closed, name: str
) -> Iterator[tuple[float, Client]]:
    prompts, answers = _lengths(one.input), _lengths(one.output)
    until_s = one.start_seconds + loop.seconds
    for number in range(loop.clients):
        rng = random.Random(f"{name}/{number}")
        yield one.start_seconds, Client(prompts, answers, loop.think_seconds, until_s, rng)


def _lengths(given: int | scenario.Lengths) -> generators.Lengths:
    if isinstance(given, int):
        return generators.Lengths(given)
    return generators.Lengths(given.median, given.p95, given.max)
