"""How late tokens are, counted without keeping them."""

from modelserve.testing.clock import ManualClock
from servelab.bench.enginehost import Lateness
from servelab.engine.core.sequences import Output


async def test_lateness_is_counted_by_token_and_starts_anew_once_taken() -> None:
    clock = ManualClock(real_s=10.0)
    late = Lateness(clock)
    for _ in range(9):
        late.flushed()
    late.sent([Output((9.9985,), tuple("abcdefghi")), Output((9.9955,), ("a",))])
    assert late.take(0.9) == {"late_s": 0.0016, "tokens": 10}
    assert late.take(0.9)["tokens"] == 0


async def test_the_rarest_tokens_are_in_the_highest_quantile() -> None:
    clock = ManualClock(real_s=10.0)
    late = Lateness(clock)
    for _ in range(9):
        late.flushed()
    late.sent([Output((9.9985,), tuple("abcdefghi")), Output((9.9955,), ("a",)), Output((), ())])
    assert round(late.take(0.99)["late_s"], 4) == 0.0046


async def test_answers_that_are_written_later_are_later() -> None:
    clock = ManualClock(real_s=10.0)
    late = Lateness(clock)
    late.flushed()
    await clock.advance(0.002)
    late.flushed()
    late.sent([Output((9.9995,), ("a", "b"))])
    assert round(late.take(0.5)["late_s"], 4) == 0.0006
