"""The bytes of an answer with vLLM 0.33's fields: server-sent events, or one JSON document."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DONE = b"data: [DONE]\n\n"
FINGERPRINT = "servelab"
# Stands for the text in a prebuilt event; no id or name that came by HTTP can hold it.
_MARK = "\0"


@dataclass(frozen=True, slots=True)
class Head:
    """What all parts of one answer share. ``created`` is Unix time in whole seconds."""

    id: str
    created: int
    model: str
    chat: bool

    def fields(self, *, stream: bool) -> dict[str, Any]:
        """The leading JSON fields."""
        if not self.chat:
            kind = "text_completion"
        else:
            kind = "chat.completion.chunk" if stream else "chat.completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, Any]:
    """Token counts."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


class ChoiceChunks:
    """The events of one choice. ``fingerprint``: the last one carries it, not a usage event."""

    __slots__ = ("_between", "_fingerprint", "_head", "_index", "_prefix", "_suffix")

    def __init__(self, head: Head, index: int, *, fingerprint: bool) -> None:
        self._head = head
        self._index = index
        self._fingerprint = fingerprint
        prefix, suffix = event(self._content(_MARK)).split(json.dumps(_MARK)[1:-1].encode())
        self._prefix, self._suffix, self._between = prefix, suffix, suffix + prefix

    def role(self, usage: Mapping[str, Any] | None = None) -> bytes:
        """The first event of a chat answer; empty for a text completion."""
        if not self._head.chat:
            return b""
        delta = {"role": "assistant", "content": ""}
        choice = {"index": self._index, "delta": delta, "logprobs": None, "finish_reason": None}
        document = self._head.fields(stream=True) | {"choices": [choice]}
        document |= {"usage": dict(usage)} if usage else {}
        return event(document | {"prompt_token_ids": None, "prompt_text": None})

    def tokens(self, pieces: Sequence[bytes]) -> bytes:
        """One event for each piece; pieces must need no escaping in JSON."""
        return self._prefix + self._between.join(pieces) + self._suffix if pieces else b""

    def token(self, text: str, usage: Mapping[str, Any] | None) -> bytes:
        """One event with any text."""
        return event(self._content(text) | ({"usage": dict(usage)} if usage else {}))

    def last(self, text: str, reason: str, usage: Mapping[str, Any] | None) -> bytes:
        """The event with the last token and the reason of the end."""
        document = self._content(text)
        document["choices"][0] |= {
            "finish_reason": reason,
            "stop_reason": None,
            "weight_versions": None,
        }
        document |= {"usage": dict(usage)} if usage else {}
        document |= {"system_fingerprint": FINGERPRINT} if self._fingerprint else {}
        return event(document)

    def _content(self, text: str) -> dict[str, Any]:
        if self._head.chat:
            choice: dict[str, Any] = {
                "index": self._index,
                "delta": {"content": text},
                "logprobs": None,
                "finish_reason": None,
                "token_ids": None,
            }
        else:
            choice = {
                "index": self._index,
                "text": text,
                "logprobs": None,
                "finish_reason": None,
                "stop_reason": None,
                "prompt_token_ids": None,
                "token_ids": None,
                "weight_versions": None,
            }
        fields = self._head.fields(stream=True)
        return fields | {"choices": [choice], "kv_transfer_params": None}


def event(document: Mapping[str, Any]) -> bytes:
    """A server-sent event."""
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


def usage_event(head: Head, counts: Mapping[str, Any]) -> bytes:
    """The event after the last choice, if the client asked for usage."""
    document = head.fields(stream=True) | {"choices": [], "usage": dict(counts)}
    return event(document | {"system_fingerprint": FINGERPRINT})


def whole(head: Head, choices: Sequence[tuple[str, str]], counts: Mapping[str, Any]) -> bytes:
    """A complete answer; ``choices`` are text and reason of the end."""
    build = _chat_choice if head.chat else _text_choice
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    document = head.fields(stream=False) | {
        "choices": [build(index, *choice) for index, choice in enumerate(choices)],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": dict(counts) | details,
    }
    if head.chat:
        document |= {"prompt_logprobs": None, "prompt_token_ids": None, "prompt_text": None}
    document |= {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}
    return json.dumps(document, separators=(",", ":")).encode()


def _chat_choice(index: int, text: str, reason: str) -> dict[str, Any]:
    empty = ("refusal", "annotations", "audio", "function_call", "reasoning")
    message = {"role": "assistant", "content": text} | dict.fromkeys(empty)
    return {
        "index": index,
        "message": message,
        "logprobs": None,
        "finish_reason": reason,
        "stop_reason": None,
        "token_ids": None,
        "routed_experts": None,
        "weight_versions": None,
    }


def _text_choice(index: int, text: str, reason: str) -> dict[str, Any]:
    empty = ("stop_reason", "token_ids", "prompt_logprobs", "prompt_token_ids", "routed_experts")
    choice = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
    return choice | dict.fromkeys(empty) | {"weight_versions": None}
