"""How likely certain tokens come next: ``/generative_scoring``.

No model runs here: likelihoods are drawn by prompt and token, and those of equal ones are equal.
"""

import hashlib
import math
import random
import struct
from collections.abc import Sequence
from typing import Any

from pydantic import Field

from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.exchange import Request, Response
from servelab.engine.replying import WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.vllm import bodies, protocol, reading, rules
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import encoding, vocabulary

# Of log-probabilities.
_LEAST, _MOST = -12.0, -0.1


class ScoringRequest(bodies.Salted):
    model: str | None = None
    query: str | list[int]
    items: list[str] | list[list[int]]
    label_token_ids: list[int]
    apply_softmax: bool = True
    item_first: bool = False
    add_special_tokens: bool = True
    cache_salt: str | None = None
    priority: int = Field(default=0, ge=bodies.INT64_MIN, le=bodies.INT64_MAX)
    request_id: str = ""


def reply(request: Request, host: Host) -> "ScoringReply":
    """The answer to come. Raises Refusal."""
    asked = reading.validate(ScoringRequest, reading.load(request.body, request.content_type))
    protocol.check_model(asked.model, host.served)
    _check(asked)
    prompts = tuple(_prompt(asked, item, host.served) for item in asked.items)
    if len(asked.label_token_ids) > rules.MAX_LOGPROBS:
        raise Refusal(f"At most {rules.MAX_LOGPROBS} labels are scored.", param="logprobs")
    for prompt in prompts:
        rules.known_prompt(prompt.ids)
    name = request.headers.get("x-request-id") or asked.request_id or host.name()
    call = Call(False, prompts, max_tokens=1, ignore_eos=True, priority=asked.priority)
    head = {"id": f"generative-scoring-{name}", "created": int(host.unix_s())}
    return ScoringReply(call, asked, head | {"model": host.served.name})


def _check(asked: ScoringRequest) -> None:
    for token in asked.label_token_ids:
        if not 0 <= token < vocabulary.VOCABULARY_SIZE:
            raise Refusal(f"label_token_ids holds {token}, which the vocabulary does not have.")
    for name in ("label_token_ids", "items"):
        if not getattr(asked, name):
            raise Refusal(f"{name} must not be empty.")


def _prompt(asked: ScoringRequest, item: str | list[int], served: Served) -> Prompt:
    """Query and item, or the other way round, cut where no room is left for a token."""
    query, part = _ids(asked.query), _ids(item)
    ids = part + query if asked.item_first else query + part
    ids = ids[: served.max_model_tokens - 1]
    return Prompt(len(ids), ids=tuple(ids))


def _ids(said: str | list[int]) -> list[int]:
    return encoding.encode(said) if isinstance(said, str) else said


class ScoringReply(WholeReply):
    """The score of each item: how likely the first label is."""

    def __init__(self, call: Call, asked: ScoringRequest, head: dict[str, Any]) -> None:
        super().__init__(call)
        self._asked = asked
        self._head = head

    def response(self) -> Response:
        data = [
            {"index": index, "object": "score", "score": score}
            for index, score in enumerate(self.scores())
        ]
        prompt_tokens, made = self.prompt_tokens, self.completion_tokens
        usage: dict[str, Any] = {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + made,
        }
        usage |= {"completion_tokens": made}
        usage |= dict.fromkeys(("prompt_tokens_details", "completion_tokens_details"))
        return fastapi.document(self._head | {"object": "list", "data": data, "usage": usage})

    def scores(self) -> list[float]:
        """Of the items, in their order."""
        return [self._score(prompt) for prompt in self.call.prompts]

    def _score(self, prompt: Prompt) -> float:
        logprobs = [_logprob(prompt.ids, label) for label in self._asked.label_token_ids]
        score = math.exp(logprobs[0])
        if self._asked.apply_softmax:
            score /= sum(map(math.exp, logprobs))
        return score


def _logprob(ids: Sequence[int], label: int) -> float:
    digest = hashlib.blake2b(struct.pack(f"<{len(ids) + 1}q", *ids, label), digest_size=8).digest()
    return random.Random(digest).uniform(_LEAST, _MOST)
