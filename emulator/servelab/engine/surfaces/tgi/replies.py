"""Answers to ``/generate`` and ``/generate_stream``."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from servelab.engine.core.sequences import Finish, FinishReason
from servelab.engine.exchange import JSON, Response
from servelab.engine.replying import Choice, StreamedReply, WholeReply
from servelab.engine.surfaces.tgi import origins, tokens
from servelab.engine.surfaces.tgi.asking import Asked

COMPUTE_TYPE = "gpu+optimized"
EVENT_STREAM = "text/event-stream"

# Told of each request that is answered, with its ends.
Answered = Callable[[Sequence[Finish]], None]
Headers = tuple[tuple[str, str], ...]


def finish_reason(choice: Choice) -> str:
    """Why it ended, in the router's words."""
    if choice.reason != FinishReason.STOP:
        return "length"
    return "eos_token" if choice.stop_reason is None else "stop_sequence"


def chat_reason(choice: Choice) -> str:
    """The end of a chat: OpenAI's word for the end of the text alone."""
    reason = finish_reason(choice)
    return "stop" if reason == "eos_token" else reason


def timing_headers(choices: Sequence[Choice], characters: int) -> Headers:
    """What an answer took: milliseconds, and ``x-compute-time`` in seconds; of several the sums."""
    ends = [choice.finished for choice in choices if choice.finished is not None]
    total_s = sum(end.at_s - end.arrived_s for end in ends)
    queue_s = sum((end.scheduled_s or end.at_s) - end.arrived_s for end in ends)
    inference_s = total_s - queue_s
    generated = sum(end.output_tokens for end in ends)
    return (
        ("x-compute-type", COMPUTE_TYPE),
        ("x-compute-time", f"{total_s:.9g}"),
        ("x-compute-characters", str(characters)),
        ("x-total-time", str(int(total_s * 1000))),
        ("x-validation-time", "0"),
        ("x-queue-time", str(int(queue_s * 1000))),
        ("x-inference-time", str(int(inference_s * 1000))),
        ("x-time-per-token", str(int(inference_s * 1000 / max(1, generated)))),
        ("x-prompt-tokens", str(sum(choice.prompt.tokens for choice in choices))),
        ("x-generated-tokens", str(generated)),
    )


def stream_head(characters: int) -> Response:
    """The head of every stream."""
    headers = (
        ("cache-control", "no-cache"),
        ("x-compute-type", COMPUTE_TYPE),
        ("x-compute-characters", str(characters)),
        ("x-accel-buffering", "no"),
    )
    return origins.crossed(Response(content_type=EVENT_STREAM, headers=headers))


def finishes(choices: Sequence[Choice]) -> list[Finish]:
    """The ends of those that ended."""
    return [choice.finished for choice in choices if choice.finished is not None]


def made(choice: Choice) -> list[tuple[int, str]]:
    """All tokens so far: id and text."""
    pieces = choice.answer.pieces(0, choice.sent + choice.pending)
    return [(choice.answer.token(index), piece.decode()) for index, piece in enumerate(pieces)]


class Generated(WholeReply):
    """One text; with ``best_of`` the likeliest of several. ``listed``: in a list of one."""

    def __init__(self, asked: Asked, answered: Answered, *, listed: bool = False) -> None:
        super().__init__(asked.call)
        self._asked = asked
        self._answered = answered
        self._listed = listed

    def response(self) -> Response:
        """The whole answer."""
        best = max(self.choices, key=_mean_logprob)
        others = [choice for choice in self.choices if choice is not best]
        document: dict[str, Any] = {"generated_text": self._text(best)}
        if self._asked.details:
            document["details"] = self._details(best, others)
        self._answered(finishes([best]))
        body = tokens.compact([document] if self._listed else document)
        headers = timing_headers([best], self._asked.characters)
        return origins.crossed(Response(200, body, JSON, headers))

    def _text(self, choice: Choice) -> str:
        return self._asked.inputs[0] + choice.text if self._asked.full_text else choice.text

    def _details(self, best: Choice, others: Sequence[Choice]) -> dict[str, Any]:
        details = self._sequence(best)
        top = details.pop("top_tokens", None)
        if others:
            details["best_of_sequences"] = [
                {"generated_text": self._text(choice)} | self._sequence(choice) for choice in others
            ]
        return details if top is None else details | {"top_tokens": top}

    def _sequence(self, choice: Choice) -> dict[str, Any]:
        asked, all_made = self._asked, made(choice)
        sequence: dict[str, Any] = {
            "finish_reason": finish_reason(choice),
            "generated_tokens": len(all_made),
            "seed": asked.seed,
            "prefill": tokens.prefill(choice.prompt.encoded()) if asked.prefill else [],
            "tokens": [tokens.token(*each) for each in all_made],
        }
        if asked.top_n_tokens:
            count = asked.top_n_tokens
            sequence["top_tokens"] = [tokens.likeliest(*each, count) for each in all_made]
        return sequence


def _mean_logprob(choice: Choice) -> float:
    values = [tokens.logprob(token_id) for token_id, _ in made(choice)]
    return sum(values) / max(1, len(values))


class TokenStream(StreamedReply):
    """Every token as an event; the last one has the text."""

    def __init__(self, asked: Asked, answered: Answered) -> None:
        super().__init__(asked.call)
        self._asked = asked
        self._answered = answered
        self.head = stream_head(asked.characters)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token."""
        token_id = choice.answer.token(choice.sent - 1)
        token = json.dumps(tokens.token(token_id, text), separators=(",", ":"), ensure_ascii=False)
        top = ""
        if self._asked.top_n_tokens:
            found = tokens.likeliest(token_id, text, self._asked.top_n_tokens)
            top = f'"top_tokens":{tokens.compact(found).decode()},'
        rest = self._end(choice) if choice.ended else '"generated_text":null,"details":null'
        event = f'data: {{"index":{choice.sent},"token":{token},{top}{rest}}}\n\n'
        parts.append(event.encode())

    def finish(self, parts: list[bytes]) -> None:
        """Nothing comes after the last token."""
        self._answered(finishes(self.choices))

    def _end(self, choice: Choice) -> str:
        asked = self._asked
        text = asked.inputs[0] + choice.text if asked.full_text else choice.text
        details = None
        if asked.details:
            details = {
                "finish_reason": finish_reason(choice),
                "generated_tokens": choice.sent,
                "seed": asked.seed,
                "input_length": choice.prompt.tokens,
            }
        rest = tokens.compact({"generated_text": text, "details": details}).decode()
        return rest[1:-1]
