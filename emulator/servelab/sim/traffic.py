"""From a scenario's traffic to requests: open streams merged in order of time, and closed loops."""

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from modelserve.decide import prediction
from servelab.sim import scenario
from servelab.workload import arrivals, generators, resampling, servegen, tracefile

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
    longest = prediction.max_model_tokens(model.spec)
    streams: list[Iterator[arrivals.Arrival]] = []
    clients: list[tuple[float, Client]] = []
    for number, one in enumerate(model.traffic):
        name = f"{seed}/{model.name}/{number}"
        if one.closed is not None:
            clients += _clients(one, one.closed, name)
        else:
            streams.append(_shifted(_stream(one, name, lines, longest), one.start_seconds))
    merged = heapq.merge(*streams, key=lambda each: each.at_s) if len(streams) != 1 else streams[0]
    return Sources(arrivals.limited(merged, longest), clients)


def has_lengths(one: scenario.Traffic) -> bool:
    """Whether it gives both lengths itself, so that no client's are read."""
    return one.model_fields_set >= {"input", "output"}


def obstacle(one: scenario.Traffic, longest: int, lines: Lines) -> str:
    """What keeps blocks of its trace from being drawn; empty if nothing does, or none are.

    ``longest`` is the most tokens that its model takes. Raises InputError for what is no trace.
    """
    if one.trace is None or one.resample_seconds is None:
        return ""
    read = _trace(one.trace, lines, longest)
    return resampling.obstacle(read, one.resample_seconds, one.trace, one.seconds)


def open_trace(name: str) -> Iterable[str]:
    """A trace of the package by its name. Raises UnknownName."""
    return tracefile.packaged(name)


def _shifted(stream: Iterator[arrivals.Arrival], by_s: float) -> Iterator[arrivals.Arrival]:
    if not by_s:
        return stream
    return (arrivals.Arrival(a.at_s + by_s, a.input_tokens, a.output_tokens) for a in stream)


def _stream(
    one: scenario.Traffic, name: str, lines: Lines, longest: int
) -> Iterator[arrivals.Arrival]:
    if one.trace is not None:
        read = _trace(one.trace, lines, longest)
        if one.resample_seconds is not None:
            rng = random.Random(f"{name}/blocks")
            return resampling.blocks(read, one.resample_seconds, rng, one.trace, one.seconds)
        return read if one.seconds is None else arrivals.window(read, one.seconds)
    prompts, answers = _laws(one, lines)
    times_s = _times_s(one, random.Random(f"{name}/times"), lines)
    return generators.with_lengths(times_s, prompts, answers, random.Random(f"{name}/lengths"))


def _trace(name: str, lines: Lines, longest: int) -> Iterator[arrivals.Arrival]:
    return tracefile.read(lines(name), name, most_tokens=max(tracefile.MOST_TOKENS, longest))


def _times_s(one: scenario.Traffic, rng: random.Random, lines: Lines) -> Iterator[float]:
    kind = next(kind for kind in scenario.LAWS if getattr(one, kind) is not None)
    match getattr(one, kind):
        case scenario.Poisson() as law:
            return generators.poisson(law.per_second, law.seconds, rng)
        case scenario.Steady() as even:
            return generators.steady(even.per_second, even.seconds)
        case scenario.Gamma() as bursty:
            return generators.gamma(bursty.per_second, bursty.cv, bursty.seconds, rng)
        case scenario.OnOff() as spells:
            return generators.on_off(
                spells.per_second, spells.on_seconds, spells.off_seconds, spells.seconds, rng
            )
        case scenario.Ramp() as ramp:
            return generators.ramp(ramp.from_per_second, ramp.to_per_second, ramp.seconds, rng)
        case other:
            return generators.windowed(_windows(other, lines), rng)


def _windows(
    law: scenario.Step | scenario.Windows | scenario.ServeGen, lines: Lines
) -> Iterator[generators.Window]:
    match law:
        case scenario.Step():
            first_s = min(law.at_seconds, law.seconds)
            yield generators.Window(first_s, law.from_per_second)
            yield generators.Window(law.seconds - first_s, law.to_per_second)
        case scenario.Windows():
            shape = 1 / law.cv**2
            for per_s in law.per_second:
                yield generators.Window(law.seconds_each, per_s, shape)
        case scenario.ServeGen():
            read = servegen.windows(
                lines(law.rates), law.client, law.rates, from_s=law.from_seconds, scale=law.scale
            )
            yield from generators.cut(read, law.seconds)


def _laws(one: scenario.Traffic, lines: Lines) -> tuple[generators.LengthLaw, generators.LengthLaw]:
    """Of prompts and answers: as given, or else as the client's are."""
    given = _lengths(one.input), _lengths(one.output)
    described = one.serve_gen
    if described is None or has_lengths(one):
        return given
    name = described.lengths
    known = servegen.lengths(lines(name), described.client, name)
    return (
        given[0] if "input" in one.model_fields_set else known[0],
        given[1] if "output" in one.model_fields_set else known[1],
    )


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
