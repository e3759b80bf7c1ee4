"""OpenAI's types out of the table, with the errors that vLLM 0.33 tells."""

from typing import Any

import pytest
from pydantic_core import ValidationError

from servelab.engine.surfaces.vllm import openai_types


def errors(root: openai_types.Root, value: object) -> list[Any]:
    with pytest.raises(ValidationError) as caught:
        openai_types.validator(root).validate_python(value)
    return caught.value.errors()


# As many as the real one counted for the same.
def test_an_item_that_is_none_fails_as_each_of_all_kinds() -> None:
    assert len(errors("input", [{"role": None, "content": 5}])) == 237


def test_an_error_of_a_message_names_the_class() -> None:
    (*_, first) = errors("messages", [{"role": 5, "content": "x"}])[0]["loc"][1:]
    assert first == "role"
    assert "ChatCompletionDeveloperMessageParam" in errors("messages", [{}])[0]["loc"]


def test_a_tool_is_told_with_all_its_fields() -> None:
    (tool,) = openai_types.validator("tools").validate_python([{"type": "function", "name": "f"}])
    assert (tool["name"], tool["parameters"], tool["async"]) == ("f", None, None)


def test_parts_of_a_message_may_be_left_for_later() -> None:
    raw = [{"role": "tool", "content": [{"type": "zz"}], "tool_call_id": "x"}]
    (message,) = openai_types.validator("messages").validate_python(raw)
    with pytest.raises(ValidationError):
        list(message["content"])
