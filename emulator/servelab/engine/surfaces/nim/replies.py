"""Answers of a NIM: OpenAI's shapes with the fields that vLLM had in 2024."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces import events, fastapi
from servelab.engine.surfaces.vllm import scores


@dataclass(frozen=True, slots=True)
class Head:
    """What all parts of an answer begin with."""

    id: str
    created_unix_s: int
    model: str
    chat: bool

    def fields(self, *, chunk: bool) -> dict[str, Any]:
        """The leading fields."""
        kind = "text_completion"
        if self.chat:
            kind = "chat.completion.chunk" if chunk else "chat.completion"
        return {
            "id": self.id,
            "object": kind,
            "created": self.created_unix_s,
            "model": self.model,
        }


def reply(head: Head, call: Call) -> Reply:
    """The answer to a chat or a text completion."""
    return Stream(head, call) if call.stream else Whole(head, call)


class Whole(WholeReply):
    """One JSON document."""

    def __init__(self, head: Head, call: Call) -> None:
        super().__init__(call)
        self._head = head

    def response(self) -> Response:
        """The whole answer."""
        document = self._head.fields(chunk=False)
        document["choices"] = [self._choice(choice) for choice in self.choices]
        document["usage"] = _usage(self.prompt_tokens, self.completion_tokens)
        return fastapi.document(document)

    def _choice(self, choice: Choice) -> dict[str, Any]:
        count = choice.sent + choice.pending
        text, told = choice.text, _probabilities(self.call, choice, 0, count)
        if self.call.chat:
            message = {"role": self.call.role, "content": text}
            return {"index": choice.index, "message": message, "logprobs": told} | _end(choice)
        text = "" if self.call.prompt_only else text
        text = choice.prompt.text + text if self.call.echo else text
        return {"index": choice.index, "text": text, "logprobs": told} | _end(choice)


class Stream(StreamedReply):
    """Events, one for each token; a chat's first one has the role alone."""

    def __init__(self, head: Head, call: Call) -> None:
        super().__init__(call)
        self._head = head

    def begin(self, parts: list[bytes]) -> None:
        """The role."""
        if self.call.chat:
            for choice in self.choices:
                delta = {"role": self.call.role, "content": ""}
                parts.append(self._event(choice, {"delta": delta, "logprobs": None}))

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token."""
        told = _probabilities(self.call, choice, choice.sent - 1, 1)
        if self.call.chat:
            parts.append(self._event(choice, {"delta": {"content": text}, "logprobs": told}))
            return
        text = "" if self.call.prompt_only else text
        text = choice.prompt.text + text if self.call.echo and choice.sent == 1 else text
        parts.append(self._event(choice, {"text": text, "logprobs": told}))

    def finish(self, parts: list[bytes]) -> None:
        """What was used, if that was asked for, and the end."""
        if self.call.include_usage:
            counts = _usage(self.prompt_tokens, self.completion_tokens)
            document = self._head.fields(chunk=True) | {"choices": [], "usage": counts}
            parts.append(events.event(document))
        parts.append(events.DONE)

    def _event(self, choice: Choice, told: Mapping[str, Any]) -> bytes:
        end = _end(choice)
        if self.call.chat and not choice.ended:
            end = {"finish_reason": None}
        document = self._head.fields(chunk=True)
        document["choices"] = [{"index": choice.index, **told, **end}]
        if self.call.include_usage or not self.call.chat:
            document["usage"] = None
        return events.event(document)


def _end(choice: Choice) -> dict[str, Any]:
    ended = choice.finished is not None and not (choice.reply.call.stream and not choice.ended)
    reason = choice.reason if ended else None
    return {"finish_reason": reason, "stop_reason": choice.stop_reason if ended else None}


def _usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }


def _probabilities(call: Call, choice: Choice, first: int, count: int) -> dict[str, Any] | None:
    if call.logprobs is None:
        return None
    pieces = choice.answer.pieces(first, count)
    made = [(piece.decode(), choice.answer.token(at)) for at, piece in enumerate(pieces, first)]
    if call.chat:
        return scores.chat(made, call.logprobs)
    offset = choice.offset
    choice.offset += sum(len(text) for text, _ in made)
    return scores.completion(made, call.logprobs, offset)
