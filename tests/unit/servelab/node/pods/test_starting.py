"""The cold start of an engine container."""

from modelserve.api import wire
from servelab.engine.surfaces import startlines
from servelab.node.pods import starting
from servelab.timing import transfers

LINE = starting.Line(1.0, f"Loading weights took {startlines.took('.2f')} seconds")
STEP = starting.Step(wire.Phase.WEIGHT_LOAD, transfers.Work(3.0), 3.0, (LINE,))
BEGAN_S, SCALE = 1000.0, 20.0


def test_a_line_tells_how_long_its_phase_took_not_how_long_it_was_planned() -> None:
    after = starting.Step(wire.Phase.WARM_UP, transfers.Work(1.0), 1.0)
    cold = starting.ColdStart(starting.EngineStart("engine", (STEP, after)), SCALE)
    cold.enter(wire.Phase.WEIGHT_LOAD, BEGAN_S)
    ends_s = BEGAN_S + 60.0 / SCALE
    ((at_s, line),) = cold.take_lines(ends_s, ends_s)
    assert (at_s, line.text) == (ends_s, "Loading weights took 60.00 seconds")
    cold.enter(wire.Phase.WARM_UP, ends_s)
    assert cold.past_lines() == [(ends_s, "Loading weights took 60.00 seconds")]
