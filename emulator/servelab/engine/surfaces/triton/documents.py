"""A body as JSON, and what Triton's parser, RapidJSON, says of one that is none."""

import json
from typing import Any

from servelab.engine.surfaces.triton.refusals import TritonError

_BROKEN = "failed to parse the request JSON buffer: "
_EMPTY = "The document is empty."
# What Python's parser says at the beginning → RapidJSON's words for it.
_WORDS = {
    "Expecting property name": "Missing a name for object member.",
    "Expecting ':'": "Missing a colon after a name of object member.",
    "Extra data": "The document root must not be followed by other values.",
    "Unterminated string": "Missing a closing quotation mark in string.",
    "Invalid control": "Invalid encoding in string.",
    "Invalid \\escape": "Invalid escape character in string.",
    "Invalid \\uXXXX": "Incorrect hex digit after \\u escape in string.",
}
_COMMA = {
    "{": "Missing a comma or } after an object member.",
    "[": "Missing a comma or ] after an array element.",
}


def loaded(body: bytes, *, empty: bool = False) -> dict[str, Any]:
    """A body as a JSON object; ``empty``: none at all is one too. Raises TritonError."""
    if empty and not body:
        return {}
    try:
        document = json.loads(body)
    except json.JSONDecodeError as error:
        raise TritonError(_BROKEN + _said(body, error)) from None
    except (ValueError, RecursionError):
        raise TritonError(f"{_BROKEN}Invalid value. at 0") from None
    if not isinstance(document, dict):
        raise TritonError("attempt to get members for non-object")
    return document


def _said(body: bytes, error: json.JSONDecodeError) -> str:
    if not body.strip():
        return f"{_EMPTY} at {len(body)}"
    if error.msg.startswith("Expecting ','"):
        return f"{_COMMA[_innermost(error.doc[: error.pos])]} at {error.pos}"
    found = (word for begin, word in _WORDS.items() if error.msg.startswith(begin))
    return f"{next(found, 'Invalid value.')} at {error.pos}"


def _innermost(text: str) -> str:
    """The bracket that is open at the end of a text which is right so far."""
    opened: list[str] = []
    quoted = escaped = False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            opened.append(character)
        elif character in "}]":
            opened.pop()
    return opened[-1] if opened else "{"
