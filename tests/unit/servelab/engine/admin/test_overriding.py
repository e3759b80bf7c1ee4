"""A law under faults: as quick as without them while there are none."""

from servelab.engine.admin import documents, faults
from servelab.engine.admin.overriding import SlowedLaw
from servelab.engine.core.laws import SteadyLaw


def test_terms_are_the_inner_laws_until_there_is_a_fault() -> None:
    injected: dict[str, faults.Injected] = {}
    law = SlowedLaw(SteadyLaw(0.1), injected, lambda: 5.0)
    assert law.decode_terms(4) == (0.1, 0.0, 0.0)
    injected["slow"] = faults.Injected(documents.Slow(factor=3), 0.0)
    assert law.decode_terms(4) is None
    assert law.step_s(4, 100) == 3 * 0.1


def test_who_keeps_terms_hears_that_they_are_others() -> None:
    law, heard = SlowedLaw(SteadyLaw(0.1), {}, lambda: 0.0), []
    law.on_change(lambda: heard.append(1))
    law.changed()
    assert heard == [1]
