"""The items of OpenAI's responses API, and the events that tell of them one after the other."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces import events

_OPENING = ("created", "in_progress")


def part(text: str, logprobs: Sequence[Any] | None = None) -> dict[str, Any]:
    """The text of a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": logprobs}


def usage(prompt_tokens: int, made_tokens: int, cached_tokens: int) -> dict[str, Any]:
    """Token counts."""
    return {
        "input_tokens": prompt_tokens,
        "input_tokens_details": {"cached_tokens": cached_tokens, "cache_write_tokens": 0},
        "output_tokens": made_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt_tokens + made_tokens,
    }


class Events:
    """The numbered events of one answer, which is one item."""

    def __init__(self) -> None:
        self._number = 0
        self._place: dict[str, Any] = {}

    def tell(self, kind: str, **fields: object) -> bytes:
        """The next one."""
        self._number += 1
        return events.numbered(self._number - 1, f"response.{kind}", **fields)

    def opening(self, document: Mapping[str, Any]) -> list[bytes]:
        """Before any item."""
        return [self.tell(kind, response=document) for kind in _OPENING]

    def place(self, item: Mapping[str, Any]) -> None:
        """What comes next is of this item."""
        part_of = {"content_index": 0} if item["type"] == "message" else {}
        self._place = {"item_id": item["id"], "output_index": 0, **part_of}

    def begin(self, item: Mapping[str, Any]) -> bytes:
        """The item begins."""
        self.place(item)
        return self.tell("output_item.added", output_index=0, item=item)

    def begin_message(self, item: Mapping[str, Any], first: Mapping[str, Any]) -> list[bytes]:
        """A message begins, and its first part."""
        added = self.begin(item)
        return [added, self.tell("content_part.added", **self._place, part=first)]

    def text(self, delta: str) -> bytes:
        """More of the message."""
        return self.tell("output_text.delta", **self._place, delta=delta, logprobs=[])

    def end_message(self, text: str, item: Mapping[str, Any]) -> list[bytes]:
        """All of the message has been told."""
        return [
            self.tell("output_text.done", **self._place, text=text, logprobs=[]),
            self.tell("content_part.done", **self._place, part=part(text)),
            self.end(item),
        ]

    def arguments(self, delta: str) -> bytes:
        """More of a call's arguments."""
        return self.tell("function_call_arguments.delta", **self._place, delta=delta)

    def end_call(self, item: Mapping[str, Any]) -> list[bytes]:
        """All of a call has been told."""
        done = {"arguments": item["arguments"], "name": item["name"]}
        return [self.tell("function_call_arguments.done", **self._place, **done), self.end(item)]

    def end(self, item: Mapping[str, Any]) -> bytes:
        """The item is complete."""
        return self.tell("output_item.done", output_index=0, item=item)
