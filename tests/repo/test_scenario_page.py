"""The page on scenarios names every field of one."""

from pathlib import Path

from servelab.sim import knowing, scenario

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "scenario.md"
PLACES = [
    (),
    ("objective",),
    ("models", 0),
    ("models", 0, "traffic", 0),
    *(("models", 0, "traffic", 0, kind) for kind in ("closed", "onOff", "serveGen")),
    *(("models", 0, "traffic", 0, kind) for kind in scenario.LAWS),
]


def test_the_page_names_every_field_of_a_scenario() -> None:
    text = PAGE.read_text()
    fields = {field for place in PLACES for field in knowing.fields(place)}
    assert {"perSecond", "thinkSeconds", "tpotSeconds", "initialReplicas"} <= fields
    assert [field for field in sorted(fields) if f"`{field}`" not in text] == []
