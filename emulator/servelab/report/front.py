"""The Pareto front of two figures that should both be low. Pure."""

import math
from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Numbers of the points that no other beats, by the first figure from low to high.

    A point is beaten by one that is no worse in both and better in one. Of equal ones the first
    stays; what is not a number, or infinite, is left out.
    """
    whole = [n for n, (x, y) in enumerate(points) if math.isfinite(x) and math.isfinite(y)]
    found: list[int] = []
    lowest = math.inf
    for number in sorted(whole, key=lambda n: (*points[n], n)):
        if points[number][1] < lowest:
            lowest = points[number][1]
            found.append(number)
    return found
