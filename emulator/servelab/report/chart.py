"""A step function as a chart of characters, for terminals of any kind."""

import math
from collections.abc import Sequence


def steps(
    points: Sequence[tuple[float, float]], end_s: float, *, width: int = 72, label: str = ""
) -> str:
    """Columns of ``#`` for a step function of small whole numbers over time.

    ``points`` are (seconds, value from then on) in order; each column shows the highest value in
    its slice of time, so that no short peak is lost.
    """
    if not points or end_s <= 0:
        return f"{label}: nothing to show" if label else "nothing to show"
    columns = [_highest(points, i * end_s / width, (i + 1) * end_s / width) for i in range(width)]
    top = max(1, math.ceil(max(columns)))
    rows = [
        f"{level:>4} |" + "".join("#" if value >= level else " " for value in columns).rstrip()
        for level in range(top, 0, -1)
    ]
    axis = "   0 +" + "-" * width
    return "\n".join([*([label] if label else []), *rows, axis, _ticks(end_s, width)])


def _highest(points: Sequence[tuple[float, float]], start_s: float, stop_s: float) -> float:
    value = 0.0
    highest = 0.0
    for at_s, new in points:
        if at_s >= stop_s:
            break
        if at_s > start_s:
            highest = max(highest, value)
        value = new
        if at_s >= start_s:
            highest = max(highest, new)
    return max(highest, value)


def _ticks(end_s: float, width: int) -> str:
    line = [" "] * (width + 6)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        text = f"{share * end_s / 60:.0f} min"
        at = min(6 + round(share * width), len(line) - len(text))
        line[at : at + len(text)] = text
    return "".join(line).rstrip()
