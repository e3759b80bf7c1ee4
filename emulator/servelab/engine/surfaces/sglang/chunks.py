"""The JSON of answers with SGLang 0.5's fields, in its order."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces import events

WEIGHT_VERSION = "default"
TEXT, CHUNK = "text_completion", "chat.completion.chunk"


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int | None) -> dict[str, Any]:
    """Token counts; ``cached_tokens`` None: not told."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": None
        if cached_tokens is None
        else {"cached_tokens": cached_tokens},
        "reasoning_tokens": 0,
        "completion_tokens_details": None,
    }


def chat_event(
    name: str,
    created: int,
    model: str,
    choice: Mapping[str, Any],
    counts: Mapping[str, Any] | None = None,
    *,
    parsed: bool = False,
) -> bytes:
    """An event of a chat; what a parser of calls has seen also tells that nothing is counted."""
    document = events.completion(CHUNK, name, created, model, [choice], counts)
    if not counts and not parsed:
        del document["usage"]
    return events.event(document)


def chat_choice(
    index: int,
    delta: Mapping[str, Any],
    logprobs: Mapping[str, Any] | None = None,
    reason: str | None = None,
    matched: str | int | None = None,
) -> dict[str, Any]:
    """A choice in an event of a chat."""
    return {
        "index": index,
        "delta": {"reasoning_content": None, **delta},
        "logprobs": logprobs,
        "finish_reason": reason,
        "matched_stop": matched,
    }


def chat_usage(name: str, created: int, model: str, counts: Mapping[str, Any]) -> bytes:
    """The event after the last choice of a chat, if the client asked for usage."""
    return events.event(events.completion(CHUNK, name, created, model, [], counts))


def chat_whole(
    name: str,
    created: int,
    model: str,
    choices: Sequence[Mapping[str, Any]],
    counts: Mapping[str, Any],
) -> bytes:
    """A complete chat answer."""
    return _whole("chat.completion", name, created, model, choices, counts)


def text_event(
    name: str,
    created: int,
    model: str,
    choice: Mapping[str, Any],
    counts: Mapping[str, Any] | None,
) -> bytes:
    """An event of a text completion."""
    return events.event(events.completion(TEXT, name, created, model, [choice], counts))


def text_usage(name: str, created: int, model: str, counts: Mapping[str, Any]) -> bytes:
    """The event after the last choice of a text completion; here, nothing empty is told."""
    told = {key: value for key, value in counts.items() if value is not None}
    return events.event(events.completion(TEXT, name, created, model, [], told))


def text_choice(
    index: int,
    text: str,
    logprobs: Mapping[str, Any] | None,
    reason: str | None,
    matched: str | int | None,
    token_ids: Sequence[int] | None = None,
    prompt_token_ids: Sequence[int] | None = None,
) -> dict[str, Any]:
    """A choice of a text completion."""
    choice: dict[str, Any] = {
        "index": index,
        "text": text,
        "logprobs": logprobs,
        "finish_reason": reason,
        "matched_stop": matched,
    }
    if token_ids is not None:
        choice["token_ids"] = token_ids
    if prompt_token_ids is not None:
        choice["prompt_token_ids"] = prompt_token_ids
    return choice


def text_whole(
    name: str,
    created: int,
    model: str,
    choices: Sequence[Mapping[str, Any]],
    counts: Mapping[str, Any],
) -> bytes:
    """A complete text completion."""
    return _whole(TEXT, name, created, model, choices, counts)


def _whole(
    kind: str,
    name: str,
    created: int,
    model: str,
    choices: Sequence[Mapping[str, Any]],
    counts: Mapping[str, Any],
) -> bytes:
    document = events.completion(kind, name, created, model, choices, counts)
    return events.compact(document | {"metadata": {"weight_version": WEIGHT_VERSION}})


def streamed_error(message: str, kind: str, status: int) -> bytes:
    """An error in a stream that is open already. It is the one JSON written with spaces."""
    error = {"object": "error", "message": message, "type": kind, "param": None, "code": status}
    return b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
