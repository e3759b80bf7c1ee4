"""A conversation as a prompt: what the chat template in the tokenizer folder makes of it."""

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from servelab.engine.text import encoding
from servelab.engine.text.pretokens import MESSAGE_END, MESSAGE_START

ANSWER_ROLE = "assistant"
# Tokens around a message whose role is one token, and those that open the answer.
MESSAGE_TOKENS = 5
ANSWER_TOKENS = 3


@dataclass(frozen=True, slots=True)
class Called:
    """A call of a function as an earlier answer made it; ``arguments`` as JSON text."""

    name: str
    arguments: str


class Message(NamedTuple):
    """One turn of a conversation."""

    role: str
    content: str
    calls: tuple[Called, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """A function the model may call; ``parameters`` is a JSON schema."""

    name: str
    description: str | None = None
    parameters: Mapping[str, Any] | None = None


def encode(
    messages: Iterable[Message],
    functions: Iterable[Function] = (),
    *,
    opens_answer: bool = True,
    goes_on: bool = False,
) -> list[int]:
    """Token ids of the prompt.

    ``opens_answer``: the last tokens begin the assistant's turn. ``goes_on``: the last message
    stays open, so that the answer goes on from it.
    """
    start, end, opening = _marks()
    ids: list[int] = []
    turns = [_turn(message) for message in messages]
    if described := "".join([_described(function) for function in functions]):
        turns.insert(0, f"system\n# Tools\n{described}")
    for turn in turns:
        ids.append(start)
        ids += encoding.encode(turn)
        ids += end
    if goes_on and turns:
        del ids[-len(end) :]
    if opens_answer:
        ids += opening
    return ids


@functools.cache
def _marks() -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The token that starts a message, those that end it, and those that open the answer."""
    start, end = encoding.special(MESSAGE_START), encoding.special(MESSAGE_END)
    opening = encoding.encode(f"{ANSWER_ROLE}\n")
    return start, (end, *encoding.encode("\n")), (start, *opening)


def _turn(message: Message) -> str:
    if not message.calls:
        return f"{message.role}\n{message.content}"
    calls = (
        f'\n<tool_call>\n{{"name": {_json(call.name)}, "arguments": {call.arguments or "{}"}}}'
        "\n</tool_call>"
        for call in message.calls
    )
    return f"{message.role}\n{message.content}{''.join(calls)}"


def _described(function: Function) -> str:
    return f"\n{function.name}: {function.description or ''}\n{_json(function.parameters or {})}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
