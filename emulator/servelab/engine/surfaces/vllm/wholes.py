"""The bytes of a complete answer with vLLM 0.33's fields: one JSON document."""

import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces import events
from servelab.engine.surfaces.vllm import chunks

_text = json.encoder.encode_basestring_ascii  # a text as JSON
_COUNTS = tuple(chunks.usage(0, 0))


def whole(head: chunks.Head, choices: Sequence[chunks.Piece], counts: Mapping[str, Any]) -> bytes:
    """A complete answer."""
    return _encoded(_whole(head, choices, counts))


def bare(
    head: chunks.Head, text: str, end: chunks.End, prompt_tokens: int, completion_tokens: int
) -> bytes:
    """A complete answer of one choice and nothing beside its text, as most are.

    It is put into a form made once.
    """
    stop = "null" if end.stop_reason is None else json.dumps(end.stop_reason)
    total = prompt_tokens + completion_tokens
    values = _text(head.id), head.created, _text(text), _text(end.reason), stop
    form = _form(head.model, head.role, chat=head.chat)
    return (form % (*values, prompt_tokens, total, completion_tokens)).encode()


@functools.lru_cache(maxsize=64)
def _form(model: str, role: str, *, chat: bool) -> str:
    """A complete answer with places for what differs from one to the next."""
    head, piece = (
        chunks.Head(events.MARK, 0, model, chat, role),
        chunks.Piece(events.MARK, chunks.End(events.MARK, events.MARK)),
    )
    document = _whole(head, [piece], chunks.usage(0, 0)) | {"created": events.MARK}
    document["usage"] |= dict.fromkeys(_COUNTS, events.MARK)
    return _encoded(document).decode().replace("%", "%%").replace(_text(events.MARK), "%s")


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _whole(
    head: chunks.Head, choices: Sequence[chunks.Piece], counts: Mapping[str, Any]
) -> dict[str, Any]:
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    build = _chat_choice if head.chat else _text_choice
    document = head.fields(stream=False) | {
        "choices": [build(head, index, choice) for index, choice in enumerate(choices)],
        "service_tier": None,
        "system_fingerprint": chunks.FINGERPRINT,
        "usage": {**counts, **details, **counts},
    }
    if head.chat:
        document |= {
            "prompt_logprobs": choices[0].prompt_logprobs,
            "prompt_token_ids": choices[0].prompt_token_ids,
            "prompt_text": choices[0].prompt_text,
        }
    return document | {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}


def _chat_choice(head: chunks.Head, index: int, choice: chunks.Piece) -> dict[str, Any]:
    empty = ("refusal", "annotations", "audio", "function_call")
    message = {"role": head.role, "content": choice.text} | dict.fromkeys(empty)
    message |= {"tool_calls": choice.calls} if choice.calls else {}
    message |= {"reasoning": choice.thought}
    return {
        "index": index,
        "message": message,
        "logprobs": choice.logprobs,
        "finish_reason": choice.end and choice.end.reason,
        "stop_reason": choice.end and choice.end.stop_reason,
        "token_ids": choice.token_ids,
        "routed_experts": None,
        "weight_versions": choice.weight_versions,
    }


def _text_choice(head: chunks.Head, index: int, choice: chunks.Piece) -> dict[str, Any]:
    return {
        "index": index,
        "text": choice.text,
        "logprobs": choice.logprobs,
        "finish_reason": choice.end and choice.end.reason,
        "stop_reason": choice.end and choice.end.stop_reason,
        "token_ids": choice.token_ids,
        "prompt_logprobs": choice.prompt_logprobs,
        "prompt_token_ids": choice.prompt_token_ids,
        "routed_experts": None,
        "weight_versions": choice.weight_versions,
    }
