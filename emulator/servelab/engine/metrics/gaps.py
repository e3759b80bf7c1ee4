"""Times between tokens."""

import itertools

from servelab.engine.core.sequences import Output
from servelab.engine.metrics.series import Buckets, Histogram


class Gaps:
    """Puts each gap between two tokens of one request into a histogram."""

    def __init__(self, histogram: Histogram | Buckets) -> None:
        self._histogram = histogram
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
            self._histogram.observe(gap_s, count)
        for before_s, at_s in itertools.pairwise(times_s):
            self._histogram.observe(at_s - before_s, len(ids))
