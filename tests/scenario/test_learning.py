"""What the autoscaler learns of a model's traffic, in virtual time against a small plant."""

from dataclasses import replace
from typing import Any

from modelserve.decide import observation

# The plant's class lives in conftest.py, which no test can import by name.
Plants = Any


def steadily(rate_per_s: float, until_s: float) -> list[float]:
    return [i / rate_per_s for i in range(int(rate_per_s * until_s))]


def spikes(every_s: float, count: int, until_s: float) -> list[float]:
    """One request every two seconds, and now and then many at once."""
    calm = steadily(0.5, until_s)
    start_s = every_s
    while start_s < until_s:
        calm += [start_s + i / count for i in range(count)]
        start_s += every_s
    return sorted(calm)


def test_bursts_shorter_than_a_cold_start_are_learnt_to_be_over(
    plant: Plants, parameters: observation.Parameters
) -> None:
    """One replica works a burst off before another could help; at first that is not known."""
    given_ = replace(parameters, service_s=1)
    run = plant(given_, spikes(200, 60, 4000), service_s=1, step_s=1).run(4000)
    late = [count for at_s, count in run.writes if at_s > 2000]
    assert late in ([], [1])
    assert sorted(run.waits_s)[int(0.95 * len(run.waits_s))] < 15


def test_a_lasting_rise_after_an_hour_of_bursts_is_still_served(
    plant: Plants, parameters: observation.Parameters
) -> None:
    given_ = replace(parameters, service_s=2)
    arrivals = spikes(200, 40, 3600) + [3600 + i / 12 for i in range(12 * 600)]
    run = plant(given_, arrivals, service_s=2, step_s=1).run(4600)
    late = sorted(run.waits_s[len(arrivals) - 12 * 300 :])
    assert late[int(0.95 * len(late))] < 5
    assert run.peak <= 12


def test_a_service_time_guessed_far_too_short_starves_no_queue(
    plant: Plants, parameters: observation.Parameters
) -> None:
    run = plant(replace(parameters, service_s=0.5), steadily(2, 900), step_s=1).run(900)
    assert sorted(run.waits_s)[len(run.waits_s) // 2] < 90
    assert run.open_requests < 60
