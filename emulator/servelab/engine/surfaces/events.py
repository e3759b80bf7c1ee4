"""JSON and server-sent events as servers of OpenAI's API write them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

# Kinds of completions.
CHAT, CHAT_CHUNK, TEXT = "chat.completion", "chat.completion.chunk", "text_completion"
DONE = b"data: [DONE]\n\n"
# Stands for the text in a prebuilt event; no id or name that came by HTTP can hold it.
MARK = "\0"
_QUOTED_MARK = json.dumps(MARK)[1:-1].encode()


def compact(content: object) -> bytes:
    """JSON without blanks, text as UTF-8."""
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")


def event(content: object) -> bytes:
    """A server-sent event."""
    return b"data: " + compact(content) + b"\n\n"


def numbered(number: int, kind: str, **fields: object) -> bytes:
    """An event of OpenAI's responses API."""
    told = {**fields, "sequence_number": number, "type": kind}
    return b"event: " + kind.encode() + b"\n" + event(told)


class Completion(NamedTuple):
    """What a completion, and all events of one, begin with. ``created`` is Unix time in seconds."""

    kind: str
    id: str
    created: int
    model: str

    def document(
        self, choices: Sequence[Mapping[str, Any]], counts: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        """With its choices and its usage."""
        head = {"id": self.id, "object": self.kind, "created": self.created, "model": self.model}
        return head | {"choices": choices, "usage": counts}

    def event(
        self, choices: Sequence[Mapping[str, Any]], counts: Mapping[str, Any] | None
    ) -> bytes:
        """The same as an event."""
        return event(self.document(choices, counts))


def quoted(text: str) -> bytes:
    """A text as it stands within a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="replace")


def around(prebuilt: bytes) -> tuple[bytes, bytes]:
    """An event that was built with ``MARK`` as its text: what stands before it, and after."""
    before, after = prebuilt.split(_QUOTED_MARK)
    return before, after
