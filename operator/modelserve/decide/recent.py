"""How many happened lately."""

import math
from collections import deque


class RecentCount:
    """Counts within a sliding window, in one-second cells: a flood costs no memory."""

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._cells: deque[tuple[int, int]] = deque()

    def add(self, now_s: float) -> None:
        """One more now."""
        cell = math.floor(now_s)
        if self._cells and self._cells[-1][0] == cell:
            self._cells[-1] = (cell, self._cells[-1][1] + 1)
        else:
            self._cells.append((cell, 1))
        self._forget(now_s)

    def total(self, now_s: float) -> int:
        """Those within the window, to the second."""
        self._forget(now_s)
        return sum(count for _, count in self._cells)

    def _forget(self, now_s: float) -> None:
        while self._cells and self._cells[0][0] <= now_s - self._window_s:
            self._cells.popleft()
