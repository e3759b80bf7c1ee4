"""Answers of the native route: with meta information, and in a stream the whole text each time."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import events, likely
from servelab.engine.surfaces.sglang import refusals, telling
from servelab.engine.surfaces.sglang.asking import Asked
from servelab.engine.surfaces.sglang.making import Stream, Telling, Whole


def reply(asked: Asked, server: Telling) -> Reply:
    """The answer to a native request."""
    return GenerateStream(asked, server) if asked.call.stream else GenerateWhole(asked, server)


class GenerateWhole(Whole):
    """One object, or a list of them where there is more than one prompt or answer."""

    def response(self) -> Response:
        now = self.server.unix_s()
        told = [self._choice(choice, now) for choice in self.choices]
        return Response(body=events.compact(told[0] if self.asked.alone else told))

    def _choice(self, choice: Choice, now_unix_s: float) -> dict[str, Any]:
        count = choice.sent + choice.pending
        times = telling.times(
            choice.finished, now_unix_s, now_unix_s, measured=self.server.measured
        )
        name = self.names.of(choice.index)
        return _told(self.asked, choice, likely.text(choice), count, name, times)


def _told(
    asked: Asked,
    choice: Choice,
    text: str,
    count: int,
    name: str,
    times: dict[str, Any],
) -> dict[str, Any]:
    made = likely.tokens(choice, 0, count, asked.call.logprobs or 0)
    logprobs: dict[str, Any] = {}
    if asked.call.logprobs is not None:
        start = asked.logprob_start
        before = choice.prompt.encoded()[start:] if start >= 0 else []
        logprobs = telling.native_logprobs(
            made, before, asked.call.logprobs, texts=asked.text_in_logprobs
        )
    told: dict[str, Any] = {
        "text": text,
        "output_ids": [token.id for token in made],
        "meta_info": telling.meta(name, choice, count, logprobs, times),
    }
    if asked.prompt_ids:
        told["prompt_token_ids"] = choice.prompt.encoded()
    return told


class GenerateStream(Stream):
    """Each event tells the text from its beginning."""

    def __init__(self, asked: Asked, server: Telling) -> None:
        super().__init__(asked, server)
        self._texts: list[str] = []
        self._sent_unix_s: dict[int, float] = {}

    def add(self, choices: Sequence[Choice]) -> None:
        super().add(choices)
        self._texts += [""] * len(choices)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        index = choice.index
        self._texts[index] += text
        now = self.server.unix_s()
        first = index not in self._sent_unix_s
        sent = self._sent_unix_s.setdefault(index, now)
        finish = choice.finished if choice.ended else None
        told_sent = sent if first or (finish is not None and self.server.measured) else None
        times = telling.times(finish, told_sent, now, measured=self.server.measured)
        whole = self._texts[index]
        told = _told(self.asked, choice, whole, choice.sent, self.names.of(index), times)
        if not choice.ended:
            told["meta_info"]["finish_reason"] = None
        if not self.asked.alone:
            told["index"] = index
        parts.append(events.event(told))

    def finish(self, parts: list[bytes]) -> None:
        self.close(parts)
        parts.append(events.DONE)


def queue_full(name: str, now_unix_s: float) -> bytes:
    """The one event of a native stream that found the queue full."""
    reason = {"type": "abort", "status_code": 503, "message": refusals.QUEUE_FULL}
    times = {"e2e_latency": 0.0, "response_sent_to_client_ts": now_unix_s}
    meta = telling.unstarted(name, reason, times)
    return events.event({"text": "", "output_ids": [], "meta_info": meta})


def refused(message: str, status: int) -> bytes:
    """The one event of a native stream whose request is bad."""
    error = {
        "message": message,
        "type": "invalid_request_error",
        "code": status,
        "retryable": False,
    }
    return events.event({"error": error})
