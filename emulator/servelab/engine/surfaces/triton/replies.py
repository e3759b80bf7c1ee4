"""Answers of the OpenAI front end. It tells no usage, and of every end that it is a stop."""

from dataclasses import dataclass
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, StreamedReply, WholeReply
from servelab.engine.surfaces import events, fastapi


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer begins with."""

    id: str
    created_unix_s: int
    model: str

    def fields(self, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        """The whole document, in the schema's order."""
        return {
            "id": self.id,
            "choices": choices,
            "created": self.created_unix_s,
            "model": self.model,
            "system_fingerprint": None,
            "object": kind,
            "usage": None,
        }


def request_id(name: str) -> str:
    """Of any request, chats too; ``name`` are 32 hexadecimal digits."""
    parts = (name[:8], name[8:12], name[12:16], name[16:20], name[20:])
    return "cmpl-" + "-".join(parts)


class Whole(WholeReply):
    """A whole answer."""

    def __init__(self, call: Call, head: Head) -> None:
        super().__init__(call)
        self._head = head

    def response(self) -> Response:
        """The whole answer."""
        (choice,) = self.choices
        if self.call.chat:
            message = {"content": choice.text, "tool_calls": None, "role": "assistant"}
            told = {
                "finish_reason": "stop",
                "index": 0,
                "message": message | {"function_call": None},
                "logprobs": None,
            }
            return fastapi.document(self._head.fields("chat.completion", [told]))
        told = {"finish_reason": "stop", "index": 0, "logprobs": None, "text": choice.text}
        return fastapi.document(self._head.fields("text_completion", [told]))


class Stream(StreamedReply):
    """An answer, a chunk for each token; a chat's first chunk has the role alone."""

    def __init__(self, call: Call, head: Head) -> None:
        super().__init__(call)
        self._head = head

    def begin(self, parts: list[bytes]) -> None:
        """The role."""
        if self.call.chat:
            delta = {"content": "", "function_call": None, "role": "assistant"}
            parts.append(self._chat(delta, ended=False))

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token."""
        ended = choice.ended
        if self.call.chat:
            delta = {"content": text, "function_call": None, "role": None}
            parts.append(self._chat(delta, ended=ended))
            return
        reason = "stop" if ended else None
        told = {"finish_reason": reason, "index": 0, "logprobs": None, "text": text}
        parts.append(self._event("text_completion", told))

    def finish(self, parts: list[bytes]) -> None:
        """The end."""
        parts.append(events.DONE)

    def _chat(self, delta: dict[str, Any], *, ended: bool) -> bytes:
        reason = "stop" if ended else None
        told = {"delta": delta, "logprobs": None, "finish_reason": reason, "index": 0}
        return self._event("chat.completion.chunk", told)

    def _event(self, kind: str, told: dict[str, Any]) -> bytes:
        return events.event(self._head.fields(kind, [told]))
