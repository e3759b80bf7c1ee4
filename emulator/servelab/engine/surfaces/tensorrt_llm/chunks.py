"""The JSON of answers with TensorRT-LLM's fields, in its order."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces import events

# Tokens for each step of an answer that nothing speculates on.
DECODED_PER_STEP = 1.0


def failed(message: str) -> bytes:
    """What ends a stream at which the server fails; the end is told twice."""
    error = {"message": message, "type": "server_error", "code": None, "param": None}
    return b"data: " + json.dumps({"error": error}).encode() + b"\n\n" + events.DONE * 2


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """Token counts."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens},
    }


def without_nulls(value: Any) -> Any:
    """As pydantic writes it without what is None."""
    if isinstance(value, Mapping):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def chat_choice(
    index: int,
    delta: Mapping[str, Any],
    logprobs: Mapping[str, Any] | None = None,
    reason: str | None = None,
    stop: str | int | None = None,
    decoded: float | None = None,
) -> dict[str, Any]:
    """A choice in an event of a chat."""
    return {
        "index": index,
        "delta": delta,
        "logprobs": logprobs,
        "finish_reason": reason,
        "stop_reason": stop,
        "avg_decoded_tokens_per_iter": decoded,
    }


def chat_whole_choice(
    index: int,
    role: str,
    text: str,
    logprobs: Mapping[str, Any] | None,
    reason: str,
    stop: str | int | None,
    calls: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A choice of a complete chat answer."""
    return {
        "index": index,
        "message": {
            "role": role,
            "content": text,
            "reasoning_content": "",
            "reasoning": None,
            "tool_calls": list(calls),
        },
        "logprobs": logprobs,
        "finish_reason": reason,
        "stop_reason": stop,
        "mm_embedding_handle": None,
        "disaggregated_params": None,
        "avg_decoded_tokens_per_iter": DECODED_PER_STEP,
    }


def text_choice(
    index: int,
    text: str,
    token_ids: Sequence[int] | None,
    logprobs: Mapping[str, Any] | None,
    reason: str | None,
    stop: str | int | None,
) -> dict[str, Any]:
    """A choice in an event of a text completion."""
    return {
        "index": index,
        "text": text,
        "token_ids": token_ids,
        "logprobs": logprobs,
        "finish_reason": reason,
        "stop_reason": stop,
        "avg_decoded_tokens_per_iter": DECODED_PER_STEP,
    }
