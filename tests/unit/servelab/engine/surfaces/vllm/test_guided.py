"""Texts that a client wishes for."""

import json
import random
from typing import Any

import jsonschema
import pytest

from servelab.engine.surfaces.vllm import bodies, guided, refusals

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
}


def written(**fields: Any) -> str:
    wish = guided.wish(bodies.ChatRequest.model_validate({"messages": []} | fields))
    assert wish is not None
    return guided.constraint(wish).write(random.Random(3))


@pytest.mark.parametrize(
    "fields",
    [
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "p", "schema": PERSON},
            }
        },
        {"structured_outputs": {"json": PERSON}},
        {"structured_outputs": {"json": json.dumps(PERSON)}},
    ],
    ids=["format", "wish", "wish as text"],
)
def test_json_meets_its_schema(fields: dict[str, Any]) -> None:
    jsonschema.Draft202012Validator(PERSON).validate(json.loads(written(**fields)))


def test_any_json_object_will_do() -> None:
    assert isinstance(json.loads(written(response_format={"type": "json_object"})), dict)


def test_one_of_the_choices_is_the_answer() -> None:
    assert written(structured_outputs={"choice": ["ja", "nein"]}) in ("ja", "nein")


def test_a_pattern_is_matched() -> None:
    assert written(structured_outputs={"regex": "[0-9]{5}"}).isdecimal()


@pytest.mark.parametrize(
    "tag",
    [
        {"structures": [{"begin": "<f>", "schema": PERSON, "end": "</f>"}], "triggers": ["<f>"]},
        {
            "format": {
                "type": "tag",
                "begin": "<f>",
                "content": {"type": "json_schema", "json_schema": PERSON},
                "end": "</f>",
            }
        },
        {
            "format": {
                "type": "triggered_tags",
                "triggers": ["<f>"],
                "tags": [
                    {
                        "begin": "<f>",
                        "content": {"type": "json_schema", "json_schema": PERSON},
                        "end": ["</f>"],
                    }
                ],
            }
        },
    ],
    ids=["legacy", "tag", "triggered"],
)
def test_a_structural_tag_frames_json(tag: dict[str, Any]) -> None:
    text = written(response_format={"type": "structural_tag"} | tag)
    assert text.startswith("<f>")
    assert json.loads(text.removeprefix("<f>").removesuffix("</f>"))["name"]


def test_a_sequence_of_formats_is_written_in_turn() -> None:
    elements = [{"type": "const_string", "value": "id-"}, {"type": "regex", "pattern": r"\d{2}"}]
    form = {"type": "sequence", "elements": elements}
    text = written(response_format={"type": "structural_tag", "format": form})
    assert text.startswith("id-")


@pytest.mark.parametrize(
    "fields",
    [
        {"structured_outputs": {}},
        {"structured_outputs": {"grammar": "a", "regex": "b"}},
        {"structured_outputs": {"json": "{"}},
        {"structured_outputs": {"json_object": False}},
        {"structured_outputs": {"choice": []}},
        {"structured_outputs": {"regex": "\0"}},
        {"structured_outputs": {"grammar": " "}},
        {"structured_outputs": {"json": "[" * 65 + "]" * 65}},
        {"structured_outputs": {"regex": "a"}, "response_format": {"type": "json_object"}},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
    ],
    ids=str,
)
def test_a_wish_that_makes_no_sense_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(refusals.Refusal) as caught:
        written(**fields)
    assert caught.value.status == 400
