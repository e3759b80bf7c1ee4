"""Answers to ``/v1/chat/completions`` and ``/v1/completions``."""

from dataclasses import dataclass
from typing import Any

from servelab.engine.exchange import JSON, Response
from servelab.engine.replying import Choice, StreamedReply, WholeReply
from servelab.engine.surfaces import events
from servelab.engine.surfaces.tgi import declining, limits, origins, replies, tokens, tools
from servelab.engine.surfaces.tgi.asking import Asked
from servelab.engine.surfaces.tgi.refusals import Refusal
from servelab.engine.surfaces.tgi.replies import Answered

FINGERPRINT = f"{limits.VERSION}-{limits.DOCKER_LABEL}"


@dataclass(frozen=True, slots=True)
class Head:
    """What an answer begins with: the model's name, and when it was made."""

    model: str
    created_unix_s: int


def usage(prompt_tokens: int, completion_tokens: int) -> dict[str, int]:
    """Token counts."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


def _logprobs(made: list[tuple[int, str]], top: int) -> dict[str, Any]:
    return {
        "content": [
            {
                "token": text,
                "logprob": tokens.logprob(token_id),
                "top_logprobs": [
                    {"token": each["text"], "logprob": each["logprob"]}
                    for each in (tokens.likeliest(token_id, text, top) if top else ())
                ],
            }
            for token_id, text in made
        ]
    }


class Chat(WholeReply):
    """A whole chat answer. ``logprobs``: told where the client asked; ``calls``: of a function.

    ``declined`` is the answer before, that it calls none.
    """

    def __init__(
        self,
        asked: Asked,
        head: Head,
        answered: Answered,
        *,
        logprobs: bool,
        calls: bool = False,
        declined: declining.Declined | None = None,
    ) -> None:
        super().__init__(asked.call)
        self._calls = calls
        self._declined = declined
        self._asked = asked
        self._head = head
        self._answered = answered
        self._wants_logprobs = logprobs

    def response(self) -> Response:
        """The whole answer."""
        (choice,) = self.choices
        told, reason = replies.made(choice), replies.chat_reason(choice)
        if self._declined is not None:
            # The router tells of the answer it did not pass on.
            told, reason = list(self._declined.made), self._declined.reason
        top = self._asked.top_n_tokens
        self._answered(replies.finishes(self.choices))
        try:
            message = self._message(choice)
        except Refusal as refusal:
            return origins.crossed(refusal.response())
        document = {
            "object": "chat.completion",
            "id": "",
            "created": self._head.created_unix_s,
            "model": self._head.model,
            "system_fingerprint": FINGERPRINT,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": _logprobs(told, top) if self._wants_logprobs else None,
                    "finish_reason": reason,
                }
            ],
            "usage": usage(choice.prompt.tokens, len(told)),
        }
        headers = replies.timing_headers(self.choices, self._asked.characters)
        return origins.crossed(Response(200, tokens.compact(document), JSON, headers))

    def _message(self, choice: Choice) -> dict[str, Any]:
        if self._calls:
            return {"role": "assistant", "tool_calls": [tools.called(choice.text)]}
        return {"role": "assistant", "content": choice.text}


class ChatStream(StreamedReply):
    """A chat answer, a chunk for each token. ``deltas``: it is a call of a function."""

    def __init__(
        self,
        asked: Asked,
        head: Head,
        answered: Answered,
        *,
        logprobs: bool,
        include_usage: bool,
        deltas: tools.Deltas | None = None,
    ) -> None:
        super().__init__(asked.call)
        self._deltas = deltas
        self._asked = asked
        self._answered = answered
        self._wants_logprobs = logprobs
        self._include_usage = include_usage
        self.head = replies.stream_head(asked.characters)
        before = {
            "object": "chat.completion.chunk",
            "id": "",
            "created": head.created_unix_s,
            "model": head.model,
            "system_fingerprint": FINGERPRINT,
        }
        self._before = b"data: " + tokens.compact(before)[:-1]

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token."""
        delta: dict[str, Any] | None = {"role": "assistant", "content": text}
        if self._deltas is not None:
            delta = self._deltas.after(text)
        if delta is None:
            return
        logprobs = None
        if self._wants_logprobs:
            token_id = choice.answer.token(choice.sent - 1)
            logprobs = _logprobs([(token_id, text)], self._asked.top_n_tokens)
        told = {
            "index": 0,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": replies.chat_reason(choice) if choice.ended else None,
        }
        parts.append(self._event([told], None))

    def finish(self, parts: list[bytes]) -> None:
        """The usage, if it is wanted, and the end."""
        if self._include_usage:
            parts.append(self._event([], usage(self.prompt_tokens, self.completion_tokens)))
        parts.append(events.DONE)
        self._answered(replies.finishes(self.choices))

    def _event(self, choices: list[dict[str, Any]], counts: dict[str, int] | None) -> bytes:
        rest = tokens.compact({"choices": choices, "usage": counts})
        return self._before + b"," + rest[1:] + b"\n\n"


class Completion(WholeReply):
    """Whole text completions, in the order in which they ended."""

    def __init__(self, asked: Asked, head: Head, answered: Answered) -> None:
        super().__init__(asked.call)
        self._asked = asked
        self._head = head
        self._answered = answered

    def response(self) -> Response:
        """The whole answer."""
        ended = sorted(self.choices, key=lambda each: each.finished.at_s if each.finished else 0.0)
        document = {
            "object": "text_completion",
            "id": "",
            "created": self._head.created_unix_s,
            "model": self._head.model,
            "system_fingerprint": FINGERPRINT,
            "choices": [
                {
                    "index": choice.index,
                    "text": choice.text,
                    "logprobs": None,
                    "finish_reason": replies.chat_reason(choice),
                }
                for choice in ended
            ],
            "usage": usage(self.prompt_tokens, self.completion_tokens),
        }
        self._answered(replies.finishes(self.choices))
        headers = replies.timing_headers(self.choices, self._asked.characters)
        told = tuple(each for each in headers if each[0] != "x-compute-time")
        return origins.crossed(Response(200, tokens.compact(document), JSON, told))


class CompletionStream(StreamedReply):
    """Text completions, a chunk for each token; the last of each prompt has its usage."""

    def __init__(self, asked: Asked, head: Head, answered: Answered) -> None:
        super().__init__(asked.call)
        self._head = head
        self._answered = answered
        self.head = replies.stream_head(asked.characters)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token."""
        head = self._head
        told = {
            "index": choice.index,
            "text": text,
            "logprobs": None,
            "finish_reason": replies.finish_reason(choice) if choice.ended else "",
        }
        model = {"model": head.model, "system_fingerprint": FINGERPRINT}
        common = {"object": "text_completion", "id": "", "created": head.created_unix_s}
        if choice.ended:
            counts = usage(choice.prompt.tokens, choice.sent)
            document = common | model | {"choices": [told], "usage": counts}
        else:
            document = common | {"choices": [told]} | model
        parts.append(b"data: " + tokens.compact(document) + b"\n\n")

    def finish(self, parts: list[bytes]) -> None:
        """The end."""
        parts.append(events.DONE)
        self._answered(replies.finishes(self.choices))
