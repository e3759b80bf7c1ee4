"""The prompt is what the chat template in the tokenizer folder renders."""

import json
from typing import Any

import jinja2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from servelab.engine.text import encoding, template


def shipped_template() -> jinja2.Template:
    """The template as Hugging Face's libraries load it."""
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    settings = json.loads(encoding.folder().joinpath("tokenizer_config.json").read_text("utf-8"))
    return environment.from_string(settings["chat_template"])


TEMPLATE = shipped_template()

roles = st.sampled_from(["user", "system", "assistant", "tool", "developer"]) | st.text(max_size=5)
calls = st.builds(template.Called, st.text(max_size=8), st.sampled_from(["", "{}", '{"a": [1]}']))
messages = st.builds(
    template.Message, roles, st.text(max_size=30), st.lists(calls, max_size=2).map(tuple)
)
schemas = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.none())
functions = st.builds(
    template.Function,
    st.text(min_size=1, max_size=8),
    st.none() | st.text(max_size=20),
    st.none() | schemas,
)


def rendered(
    turns: list[template.Message], offered: list[template.Function], *, opens_answer: bool
) -> str:
    """What a client renders from the body it sends."""
    said: list[dict[str, Any]] = []
    for turn in turns:
        made = [{"function": {"name": c.name, "arguments": c.arguments}} for c in turn.calls]
        said.append({"role": turn.role, "content": turn.content, "tool_calls": made})
    tools = [
        {"function": {"name": f.name, "description": f.description, "parameters": f.parameters}}
        for f in offered
    ]
    return TEMPLATE.render(messages=said, tools=tools, add_generation_prompt=opens_answer)


@given(st.lists(messages, max_size=4), st.lists(functions, max_size=2), st.booleans())
def test_ids_are_those_of_the_rendered_template(
    turns: list[template.Message], offered: list[template.Function], opens_answer: bool
) -> None:
    ids = template.encode(turns, offered, opens_answer=opens_answer)
    assert ids == encoding.encode(rendered(turns, offered, opens_answer=opens_answer))


def test_content_parts_are_lines() -> None:
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    text = TEMPLATE.render(messages=[{"role": "user", "content": parts}])
    joined = template.Message("user", "one\ntwo")
    assert encoding.encode(text) == template.encode([joined], opens_answer=False)


def test_an_answer_may_go_on_from_the_last_message() -> None:
    turns = [template.Message("user", "hello"), template.Message("assistant", "so it")]
    ids = template.encode(turns, opens_answer=False, goes_on=True)
    assert encoding.decode(ids).endswith("<|im_start|>assistant\nso it")


@pytest.mark.parametrize("role", ["user", "system", "assistant", "tool"])
def test_a_message_costs_as_many_tokens_as_its_content_and_five(role: str) -> None:
    ids = template.encode([template.Message(role, "hello")])
    assert len(ids) == template.MESSAGE_TOKENS + 1 + template.ANSWER_TOKENS


def test_the_folder_s_two_copies_of_the_template_are_equal() -> None:
    settings = json.loads(encoding.folder().joinpath("tokenizer_config.json").read_text("utf-8"))
    assert settings["chat_template"] == encoding.folder().joinpath("chat_template.jinja").read_text(
        "utf-8"
    )
