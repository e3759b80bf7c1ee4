"""How long an engine was at work."""

from dataclasses import dataclass

from servelab.engine import metering
from servelab.engine.core.sequences import FirstToken, Output


@dataclass
class Gauges:
    """What runs and waits."""

    running: int = 1
    waiting: int = 0
    kv_usage: float = 0.25
    prefix_tokens: tuple[int, int] = (0, 0)


def output(*times_s: float, first_s: float | None = None, ids: tuple[str, ...] = ("a",)) -> Output:
    """Steps; ``first_s`` is when the request of the first one arrived."""
    firsts = () if first_s is None else (FirstToken("a", times_s[0], first_s, 10),)
    return Output(times_s, ids, firsts, prefill_tokens=0 if first_s is None else 10)


def test_steps_in_a_row_are_one_stretch_of_work() -> None:
    meter = metering.Meter(Gauges())
    meter.observe([output(1.5, first_s=1.0), output(1.6, 1.7)])
    assert meter.read() == metering.Load(1, 0, 0.25, meter.read().busy_s, 3, 13)
    assert round(meter.read().busy_s, 9) == 0.7


def test_silence_is_no_work() -> None:
    gauges = Gauges()
    meter = metering.Meter(gauges)
    meter.observe([output(1.5, first_s=1.0)])
    gauges.running = 0
    meter.observe([output(1.6)])
    gauges.running = 1
    meter.observe([output(9.5, first_s=9.0)])
    assert round(meter.read().busy_s, 9) == 1.1


def test_a_reading_survives_the_way_between_processes() -> None:
    found = metering.Load(1, 2, 0.5, 3.25, 4, 5.0)
    assert metering.Load.parse(found.to_json()) == found
