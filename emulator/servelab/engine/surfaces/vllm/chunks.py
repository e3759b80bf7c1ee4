"""The bytes of an answer with vLLM 0.33's fields: server-sent events, or one JSON document."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.surfaces import events

FINGERPRINT = "servelab"
_text = json.encoder.encode_basestring_ascii  # a text as JSON


@dataclass(frozen=True, slots=True)
class Head:
    """What all parts of one answer share. ``created`` is Unix time in whole seconds."""

    id: str
    created: int
    model: str
    chat: bool
    role: str = "assistant"

    def fields(self, *, stream: bool) -> dict[str, Any]:
        """The leading JSON fields."""
        if not self.chat:
            kind = "text_completion"
        else:
            kind = "chat.completion.chunk" if stream else "chat.completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


@dataclass(frozen=True, slots=True)
class End:
    """Why a choice ended: the reason, and the text or token id that stopped it."""

    reason: str
    stop_reason: str | int | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a choice, or a whole one, with what the client asked to have beside the text.

    Where ``calls`` is not None, ``text`` may be None: a part then tells of calls alone.
    """

    text: str | None
    end: End | None = None
    usage: Mapping[str, Any] | None = None
    logprobs: Mapping[str, Any] | None = None
    token_ids: Sequence[int] | None = None
    prompt_token_ids: Sequence[int] | None = None
    prompt_logprobs: Sequence[None] | None = None
    calls: Sequence[Mapping[str, Any]] | None = None


def usage(
    prompt_tokens: int, completion_tokens: int, details: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Token counts, and where prompt tokens came from if that is told."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }
    return counts | ({"prompt_tokens_details": details} if details else {})


_COUNTS = tuple(usage(0, 0))


class ChoiceChunks:
    """The events of one choice. ``fingerprint``: the last one carries it, not a usage event."""

    __slots__ = ("_between", "_fingerprint", "_head", "_index", "_prefix", "_suffix")

    def __init__(self, head: Head, index: int, *, fingerprint: bool) -> None:
        self._head = head
        self._index = index
        self._fingerprint = fingerprint
        prefix, suffix = events.around(self.piece(Piece(events.MARK)))
        self._prefix, self._suffix, self._between = prefix, suffix, suffix + prefix

    def role(
        self, usage: Mapping[str, Any] | None = None, prompt_token_ids: Sequence[int] | None = None
    ) -> bytes:
        """The first event of a chat answer; empty for a text completion."""
        if not self._head.chat:
            return b""
        delta = {"role": self._head.role, "content": ""}
        choice = {"index": self._index, "delta": delta, "logprobs": None, "finish_reason": None}
        document = self._head.fields(stream=True) | {"choices": [choice]}
        document |= {"usage": dict(usage)} if usage else {}
        return event(document | {"prompt_token_ids": prompt_token_ids, "prompt_text": None})

    def echo(self, text: str, usage: Mapping[str, Any] | None) -> bytes:
        """The event of a chat answer that repeats the message it goes on from."""
        choice = {"index": self._index, "delta": {"content": text}}
        choice |= {"logprobs": None, "finish_reason": None}
        document = self._head.fields(stream=True) | {"choices": [choice]}
        return event(document | ({"usage": dict(usage)} if usage else {}))

    def tokens(self, pieces: Sequence[bytes]) -> bytes:
        """One event for each piece; pieces must need no escaping in JSON."""
        return self._prefix + self._between.join(pieces) + self._suffix if pieces else b""

    def piece(self, piece: Piece) -> bytes:
        """One event with any text; the last one tells the reason of the end."""
        choice = self._chat(piece) if self._head.chat else self._text(piece)
        document = self._head.fields(stream=True) | {"choices": [choice]}
        document |= {"usage": dict(piece.usage)} if piece.usage else {}
        if piece.end is not None and self._fingerprint:
            document |= {"system_fingerprint": FINGERPRINT}
        return event(document | {"kv_transfer_params": None})

    def _chat(self, piece: Piece) -> dict[str, Any]:
        delta: dict[str, Any] = {"content": piece.text}
        if piece.calls is not None:
            delta = delta | {"tool_calls": piece.calls} if piece.calls else {}
        choice = {
            "index": self._index,
            "delta": delta,
            "logprobs": piece.logprobs,
            "finish_reason": piece.end and piece.end.reason,
            "token_ids": piece.token_ids,
        }
        if piece.end is not None:
            choice |= {"stop_reason": piece.end.stop_reason, "weight_versions": None}
        return choice

    def _text(self, piece: Piece) -> dict[str, Any]:
        return {
            "index": self._index,
            "text": piece.text,
            "logprobs": piece.logprobs,
            "finish_reason": piece.end and piece.end.reason,
            "stop_reason": piece.end and piece.end.stop_reason,
            "prompt_token_ids": piece.prompt_token_ids,
            "token_ids": piece.token_ids,
            "weight_versions": None,
        }


def event(document: Mapping[str, Any], name: str = "") -> bytes:
    """A server-sent event, with a name or without."""
    data = b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"
    return b"event: " + name.encode() + b"\n" + data if name else data


def quoted(text: str) -> bytes:
    """A text as it stands within a JSON string."""
    return json.dumps(text)[1:-1].encode()


def usage_event(head: Head, counts: Mapping[str, Any]) -> bytes:
    """The event after the last choice, if the client asked for usage."""
    document = head.fields(stream=True) | {"choices": [], "usage": dict(counts)}
    return event(document | {"system_fingerprint": FINGERPRINT})


def whole(head: Head, choices: Sequence[Piece], counts: Mapping[str, Any]) -> bytes:
    """A complete answer."""
    piece = choices[0]
    text, end, calls = piece.text, piece.end or End(""), piece.calls
    bare = piece == Piece(text, piece.end, calls=calls) and not calls
    if text is None or not bare or len(choices) > 1 or len(counts) > len(_COUNTS):
        return _encoded(_whole(head, choices, counts))
    # Most have one choice and nothing beside its text: these are put into a form made once.
    reason = _text(end.reason) if piece.end else "null"
    stop = "null" if end.stop_reason is None else json.dumps(end.stop_reason)
    return (
        _form(head.model, head.role, chat=head.chat)
        % (_text(head.id), head.created, _text(text), reason, stop, *counts.values())
    ).encode()


@functools.lru_cache(maxsize=64)
def _form(model: str, role: str, *, chat: bool) -> str:
    """A complete answer with places for what differs from one to the next."""
    head, piece = (
        Head(events.MARK, 0, model, chat, role),
        Piece(events.MARK, End(events.MARK, events.MARK)),
    )
    document = _whole(head, [piece], usage(0, 0)) | {"created": events.MARK}
    document["usage"] |= dict.fromkeys(_COUNTS, events.MARK)
    return _encoded(document).decode().replace("%", "%%").replace(_text(events.MARK), "%s")


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _whole(head: Head, choices: Sequence[Piece], counts: Mapping[str, Any]) -> dict[str, Any]:
    details = {"prompt_tokens_details": None, "completion_tokens_details": None}
    build = _chat_choice if head.chat else _text_choice
    document = head.fields(stream=False) | {
        "choices": [build(head, index, choice) for index, choice in enumerate(choices)],
        "service_tier": None,
        "system_fingerprint": FINGERPRINT,
        "usage": {**counts, **details, **counts},
    }
    if head.chat:
        document |= {
            "prompt_logprobs": choices[0].prompt_logprobs,
            "prompt_token_ids": choices[0].prompt_token_ids,
            "prompt_text": None,
        }
    return document | {"kv_transfer_params": None, "ec_transfer_params": None, "metrics": None}


def _chat_choice(head: Head, index: int, choice: Piece) -> dict[str, Any]:
    empty = ("refusal", "annotations", "audio", "function_call")
    message = {"role": head.role, "content": choice.text} | dict.fromkeys(empty)
    message |= {"tool_calls": choice.calls} if choice.calls else {}
    message |= {"reasoning": None}
    return {
        "index": index,
        "message": message,
        "logprobs": choice.logprobs,
        "finish_reason": choice.end and choice.end.reason,
        "stop_reason": choice.end and choice.end.stop_reason,
        "token_ids": choice.token_ids,
        "routed_experts": None,
        "weight_versions": None,
    }


def _text_choice(head: Head, index: int, choice: Piece) -> dict[str, Any]:
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
        "weight_versions": None,
    }
