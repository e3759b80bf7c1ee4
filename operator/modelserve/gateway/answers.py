"""What clients read when they get no answer from an engine: OpenAI-shaped errors.

503, not 504, when a hold expires: the model is not available *yet*, and Retry-After is defined for
503 (RFC 9110, 10.2.3); a 504 would blame an engine that never saw the request.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from modelserve import errors
from modelserve.decide import holding, routing

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Answer:
    """An error with its HTTP status. ``retry_after_real_s`` None: another try makes no sense."""

    status: int
    code: str
    message: str
    param: str | None = None
    retry_after_real_s: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The body, as OpenAI's clients expect it."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        if self.status == 429:
            kind = "rate_limit_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return {"error": error}

    def to_response(self) -> web.Response:
        """A whole HTTP response."""
        headers = {}
        if self.retry_after_real_s is not None:
            headers["Retry-After"] = str(self.retry_after_real_s)
        elif self.status >= 500:
            # OpenAI's clients try every 5xx twice more, unless they are told not to.
            headers["x-should-retry"] = "false"
        body = json.dumps(self.to_json()).encode()
        return web.Response(status=self.status, body=body, content_type=JSON, headers=headers)

    def to_event(self) -> bytes:
        """The same as the last event of a stream that has begun."""
        return b"data: " + json.dumps(self.to_json()).encode() + b"\n\n"


class BadCall(errors.InputError):
    """A request that no model can answer."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.message)


def bad_request(message: str, param: str | None = None, code: str = "invalid_request") -> BadCall:
    """400 with one sentence."""
    return BadCall(Answer(400, code, message, param))


def unknown_model(model: str, nearest: Sequence[str]) -> Answer:
    """404 with the names that may have been meant."""
    hint = f"; did you mean {' or '.join(repr(n) for n in nearest)}?" if nearest else ""
    shown = model if len(model) <= 200 else model[:200] + "…"
    message = f"there is no model {shown!r} here{hint or '; GET /v1/models lists all'}"
    return Answer(404, "model_not_found", message, "model")


def too_large(limit_bytes: int) -> Answer:
    """413: the body is over what this gateway reads."""
    return Answer(413, "request_too_large", f"a request body may have {limit_bytes} bytes at most")


def starting() -> Answer:
    """503 of a gateway that does not know the cluster yet."""
    message = "this gateway has not heard from the Kubernetes API yet; try again"
    return Answer(503, "gateway_starting", message, retry_after_real_s=2)


def broken_off() -> Answer:
    """The engine went away in the middle of its answer."""
    return Answer(502, "engine_lost", "the engine broke off in the middle of its answer")


def refused(
    refusal: holding.Refusal, model: str, route: routing.Route | None, now_wall_s: float
) -> Answer:
    """The answer to a request that the hold turned away."""
    retry_after_real_s = routing.retry_after_real_s(route, now_wall_s)
    terms = route.terms if route else holding.Terms()
    waits = f" ({routing.waiting_comment(route)})" if route and route.waiting_for else ""
    match refusal:
        case holding.Refusal.FULL:
            message = (
                f"as many requests wait for {model!r} as its hold allows ({terms.max_requests} "
                f"requests, {terms.max_bytes} bytes); try again in {retry_after_real_s} s{waits}"
            )
            return Answer(429, refusal, message, None, retry_after_real_s)
        case holding.Refusal.EXPIRED:
            message = (
                f"no replica of {model!r} had room within {terms.max_real_s:g} s; "
                f"try again in {retry_after_real_s} s{waits}"
            )
            return Answer(503, refusal, message, None, retry_after_real_s)
        case holding.Refusal.SCALED_TO_ZERO:
            message = (
                f"{model!r} is in mode Manual with 0 replicas; scale it up with "
                f"`kubectl scale modelserve {route.key.name if route else model} --replicas=1`"
            )
            return Answer(503, refusal, message)
        case holding.Refusal.DELETED:
            return Answer(404, refusal, f"the model {model!r} has been deleted", "model")
        case holding.Refusal.STALLED:
            return Answer(503, refusal, f"{model!r} cannot serve: {route.stalled if route else ''}")
        case holding.Refusal.LOST:
            message = (
                f"the connection to the engine was reset {holding.MAX_RESETS} times before the "
                "first byte of an answer"
            )
            return Answer(502, refusal, message)
        case holding.Refusal.STOPPING:
            message = "this gateway is being stopped; try again"
            return Answer(503, refusal, message, None, 1)
