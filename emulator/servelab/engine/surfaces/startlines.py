"""When lines are due in a cold start, and the time that a phase took in them.

How long a phase takes is known when it is over, so lines have marks for it.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from modelserve.api import wire
from modelserve.decide import coldstart
from servelab.engine.surfaces.surface import StartLine

# Checkpoints come in files of about this size.
SHARD_BYTES = 5_000_000_000
# No word of a command line holds a NUL, so none is taken for a mark.
_MARK = re.compile(r"\x00(?:took:(\.\d+f)|pace:(\d+)/([1-9]\d*))\x00")


def at(phase: wire.Phase, share: float, texts: Iterable[str]) -> list[StartLine]:
    """Lines due together."""
    return [StartLine(phase, share, text) for text in texts]


def shards(n_bytes: int) -> Iterator[tuple[int, int]]:
    """Files of a checkpoint that are loaded, and how many there are: (0, 4), (1, 4) … (4, 4).

    None of a checkpoint that is not read.
    """
    count = math.ceil(n_bytes / SHARD_BYTES)
    return ((done, count) for done in range(count + 1 if count else 0))


def took(form: str) -> str:
    """A place in a line for the seconds that its phase takes."""
    return f"\0took:{form}\0"


def paced(done: int, count: int) -> str:
    """A place in a line for what ``pace`` makes of them."""
    return f"\0pace:{done}/{count}\0"


def timed(text: str, took_s: float) -> str:
    """The line with the seconds of its phase, emulated, at its marks."""

    def told(match: re.Match[str]) -> str:
        form, done, count = match.groups()
        return format(took_s, form) if form else pace(int(done), int(count), took_s)

    return _MARK.sub(told, text)


def pace(done: int, count: int, took_s: float) -> str:
    """What tqdm says behind a count, of shards that come evenly in so many seconds in all."""
    if not done:
        return "00:00<?, ?it/s"
    each_s = took_s / count
    slow = each_s >= 1 or not each_s
    rate = f"{each_s:5.2f}s/it" if slow else f"{1 / each_s:5.2f}it/s"
    return f"{_clock(done * each_s)}<{_clock((count - done) * each_s)}, {rate}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def warm_up(
    planned: coldstart.Plan, lines: Callable[[coldstart.WarmUpPart], Sequence[str]]
) -> list[StartLine]:
    """Each part's lines at the point of the phase where the part ends."""
    total_s, elapsed_s = planned.warm_up_s or 1.0, 0.0
    told: list[StartLine] = []
    for part in planned.warm_up:
        elapsed_s += part.duration_s
        told += at(wire.Phase.WARM_UP, min(1.0, elapsed_s / total_s), lines(part))
    return told
