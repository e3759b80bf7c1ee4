"""The field reference says what the schema says, and leaves nothing out."""

import pytest

from modelserve.api import crd, fields
from modelserve.api.status import ConditionType, EventReason

SPEC = crd.modelserve()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


def row(path: str) -> fields.Row:
    return next(found for found in fields.rows(SPEC, "spec") if found.path == path)


def test_a_row_has_type_default_bounds_and_meaning() -> None:
    found = row("engine.batching.maxSequences")
    assert (found.type, found.default, found.bounds) == ("integer", "`32`", "1 to 4,096")
    assert found.meaning.startswith("Batch limit of one replica")


def test_a_field_without_a_default_that_must_be_there_is_called_required() -> None:
    assert row("gpu.product").default == "required"


def test_what_is_accepted_without_effect_is_marked() -> None:
    later = {"type": "integer", "description": f"Some day. {fields.NOT_YET}"}
    found = fields.rows({"type": "object", "properties": {"later": later}}, "spec")
    assert [each.acts for each in found] == [False]
    assert row("scaling.minReplicas").acts


def test_the_fields_within_lists_are_listed() -> None:
    assert row("scaling.scaleUp.policies[].periodSeconds").default == "`15`"


def test_an_elastic_pool_is_explained_though_the_schema_cannot_say_it() -> None:
    assert "| `nodes.bootSeconds` | number | `95` |" in fields.gpupool()


def test_the_rules_that_the_api_server_checks_are_listed_once_each() -> None:
    assert fields.gpupool().count("a rate must be greater than zero") == 1


@pytest.mark.parametrize("word", [*ConditionType, *EventReason], ids=str)
def test_every_condition_and_event_is_explained(word: str) -> None:
    assert f"| `{word}` | " in fields.modelserve()


@pytest.mark.parametrize("page", fields.documents().values(), ids=fields.documents())
def test_every_line_of_a_table_has_as_many_cells_as_its_head(page: str) -> None:
    for part in page.split("\n\n"):
        lines = [line.replace("\\|", "") for line in part.splitlines() if line.startswith("|")]
        assert len({line.count("|") for line in lines}) <= 1
