"""Requests as a list of arrivals, and what can be done to one: cut, limit, summarise."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request: emulated seconds after the start, prompt tokens, answer tokens."""

    at_s: float
    input_tokens: int
    output_tokens: int


def window(arrivals: Iterable[Arrival], length_s: float) -> Iterator[Arrival]:
    """The arrivals of the first ``length_s`` seconds; they must be in order of time."""
    for arrival in arrivals:
        if arrival.at_s >= length_s:
            return
        yield arrival


def limited(arrivals: Iterable[Arrival], max_model_tokens: int) -> Iterator[Arrival]:
    """The same arrivals with prompts cut so that prompt and answer fit a model's length."""
    for arrival in arrivals:
        output = min(arrival.output_tokens, max_model_tokens - 1)
        room = max_model_tokens - output
        yield replace(arrival, input_tokens=min(arrival.input_tokens, room), output_tokens=output)


@dataclass(frozen=True, slots=True)
class Summary:
    """A workload in five numbers; lengths in tokens, the rate in requests per second."""

    requests: int
    length_s: float
    per_s: float
    mean_input_tokens: float
    mean_output_tokens: float


def summarise(arrivals: Sequence[Arrival]) -> Summary:
    """Count and mean lengths; all zero for an empty workload."""
    if not arrivals:
        return Summary(0, 0.0, 0.0, 0.0, 0.0)
    length_s = arrivals[-1].at_s - arrivals[0].at_s
    n = len(arrivals)
    return Summary(
        n,
        length_s,
        n / length_s if length_s > 0 else 0.0,
        sum(a.input_tokens for a in arrivals) / n,
        sum(a.output_tokens for a in arrivals) / n,
    )
