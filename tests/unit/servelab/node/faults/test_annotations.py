"""Faults as people are told of them."""

from modelserve.api import faults as api
from modelserve.api import names
from servelab.node.faults import annotations

T0 = 1_800_000_000.0
FAULT = '[{"type":"XID","name":"a","at":"2027-01-15T08:00:10Z","durationSeconds":20}]'


def row(now_s: float, text: str = FAULT) -> annotations.Row:
    meta = {"namespace": "d", "name": "p", "annotations": {names.FAULTS: text}}
    (found,) = annotations.rows("pod", [{"metadata": meta, "spec": {}}], now_s, 2.0)
    return found


def test_a_row_says_when_it_holds() -> None:
    cells = [row(T0 + at).cells() for at in (5, 15, 25)]
    assert cells[0][:5] == ("pod/d/p", "XID", "a", "2027-01-15T08:00:10Z", "2027-01-15T08:00:20Z")
    assert [each[5] for each in cells] == ["to come", "holds", "over"]


def test_json_has_the_words_and_whether_it_holds() -> None:
    told = row(T0 + 15).to_json()
    assert (told["on"], told["type"], told["holds"]) == ("pod/d/p", "XID", True)


def test_a_list_that_cannot_be_read_is_a_row_too() -> None:
    assert "is no JSON" in row(T0, "[").to_json()["error"]


def test_a_pools_spec_is_listed_with_its_annotation() -> None:
    pool = {
        "metadata": {"name": "p", "annotations": {names.FAULTS: FAULT}},
        "spec": {"gpu": "h100", "faults": [{"type": "NodeLost"}]},
    }
    found = annotations.rows("pool", [pool], T0, 1.0)
    assert [each.cells()[1] for each in found] == ["NodeLost", "XID"]


def test_a_sentence_says_what_was_injected() -> None:
    said = api.Fault.model_validate({"type": "XID", "afterSeconds": 5, "durationSeconds": 60})
    assert annotations.sentence(said) == "XID in 5 emulated s, for 60 emulated s"
