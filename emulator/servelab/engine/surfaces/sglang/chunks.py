"""The JSON of answers with SGLang 0.5's fields, in its order."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces import events
from servelab.engine.surfaces.events import Completion

WEIGHT_VERSION = "default"


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
    head: Completion,
    choice: Mapping[str, Any],
    counts: Mapping[str, Any] | None = None,
    *,
    parsed: bool = False,
) -> bytes:
    """An event of a chat; what a parser of calls has seen also tells that nothing is counted."""
    document = head.document([choice], counts)
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


def usage_event(head: Completion, counts: Mapping[str, Any]) -> bytes:
    """After the last choice, if the client asked for it; a text completion tells nothing empty."""
    told = dict(counts)
    if head.kind == events.TEXT:
        told = {key: value for key, value in counts.items() if value is not None}
    return head.event([], told)


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


def whole(
    head: Completion, choices: Sequence[Mapping[str, Any]], counts: Mapping[str, Any]
) -> bytes:
    """A complete answer."""
    document = head.document(choices, counts)
    return events.compact(document | {"metadata": {"weight_version": WEIGHT_VERSION}})


def streamed_error(message: str, kind: str, status: int) -> bytes:
    """An error in a stream that is open already. It is the one JSON written with spaces."""
    error = {"object": "error", "message": message, "type": kind, "param": None, "code": status}
    return b"data: " + json.dumps({"error": error}).encode() + b"\n\n"
