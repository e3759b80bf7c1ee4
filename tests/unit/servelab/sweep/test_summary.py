"""A front is of combinations that serve; what serves few is on none."""

import math
from typing import Any

from servelab.sweep import summary


def run(price: float, p95_s: float | None, completed: int = 100, **other: Any) -> dict[str, Any]:
    return {
        "gpu_hours": price,
        "cost": price,
        "ttft_p95_s": p95_s,
        "slo_attainment": 1.0,
        "requests": 100,
        "completed": completed,
    } | other


def setup(*runs: dict[str, Any]) -> summary.Setup:
    return summary.setup({"n": runs[0]["cost"]}, "committed", runs)


def test_figures_are_means_over_the_seeds() -> None:
    found = setup(run(1, 2), run(3, 4))
    assert (found.cost, found.ttft_p95_s, found.seeds) == (2, 3, 2)


def test_a_figure_that_a_seed_lacks_is_not_known() -> None:
    assert math.isnan(setup(run(1, 2), run(1, None)).ttft_p95_s)


def test_without_a_price_gpu_hours_count() -> None:
    assert setup(run(1, 2, gpu_hours=7, cost=None)).price == 7
    assert setup(run(1, 2, gpu_hours=7, cost=0.0)).price == 7


def test_the_front_leaves_out_what_is_beaten_and_what_serves_few() -> None:
    cheap, quick, beaten = setup(run(1, 9)), setup(run(5, 1)), setup(run(6, 2))
    refusing, silent = setup(run(0.5, 0.1, completed=90)), setup(run(0.1, None))
    assert summary.front([refusing, quick, beaten, cheap, silent]) == [cheap, quick]


def test_json_has_null_for_what_is_not_known() -> None:
    assert setup(run(1, None)).to_json()["ttft_p95_s"] is None
