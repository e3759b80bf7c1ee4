"""Times between tokens."""

import itertools
from collections.abc import Callable

from servelab.engine.core.sequences import Output


class Gaps:
    """Tells each gap between two tokens of one request: its seconds, and how often it was seen."""

    def __init__(self, tell: Callable[[float, int], None]) -> None:
        self._tell = tell
        self._last_token_s: dict[str, float] = {}

    def observe(self, output: Output) -> None:
        """Count the tokens of an output, and forget the requests it ended."""
        if output.ids:
            self._count(output)
        for finish in output.finished:
            self._last_token_s.pop(finish.id, None)

    def _count(self, output: Output) -> None:
        ids, times_s = output.ids, output.times_s
        first_s, end_s = times_s[0], times_s[-1]
        last_token_s = self._last_token_s
        gaps: dict[float, int] = {}
        for request_id in ids:
            before_s = last_token_s.get(request_id)
            if before_s is not None:
                gap_s = first_s - before_s
                gaps[gap_s] = gaps.get(gap_s, 0) + 1
            last_token_s[request_id] = end_s
        for gap_s, count in gaps.items():
            self._tell(gap_s, count)
        for before_s, at_s in itertools.pairwise(times_s):
            self._tell(at_s - before_s, len(ids))
