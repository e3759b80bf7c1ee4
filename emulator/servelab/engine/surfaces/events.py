"""JSON and server-sent events as servers of OpenAI's API write them."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

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


def completion(
    kind: str,
    name: str,
    created: int,
    model: str,
    choices: Sequence[Mapping[str, Any]],
    counts: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """A completion, or an event of one, as OpenAI's API has them."""
    return {
        "id": name,
        "object": kind,
        "created": created,
        "model": model,
        "choices": choices,
        "usage": counts,
    }


def quoted(text: str) -> bytes:
    """A text as it stands within a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode(errors="replace")


def around(prebuilt: bytes) -> tuple[bytes, bytes]:
    """An event that was built with ``MARK`` as its text: what stands before it, and after."""
    before, after = prebuilt.split(_QUOTED_MARK)
    return before, after
