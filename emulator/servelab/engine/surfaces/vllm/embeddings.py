"""Embeddings, which vLLM serves where it runs a model as a pooling one, and then nothing else."""

import base64
import hashlib
import json
import math
import random
import struct
from collections.abc import Sequence
from typing import Any

from modelserve.catalog import models
from modelserve.errors import UnknownName
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.replying import WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.vllm import (
    embedding_bodies,
    extensions,
    messages,
    prompting,
    protocol,
    reading,
    refusals,
    rules,
)
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import template

# Dimensions where the model's shape is not known.
DEFAULT_DIMENSIONS = 4096

_POOLING_TASKS = frozenset({"embed", "embedding", "classify", "reward", "score"})
_FORMATS = {"float32": "f", "float16": "e"}
# Of types that the packer does not know: bits of the exponent, and of what comes after it.
BITS = {"bfloat16": (8, 7), "fp8_e4m3": (4, 3), "fp8_e5m2": (5, 2)}


def is_pooling(spec: EngineSpec) -> bool:
    """Whether the engine runs its model for embeddings and the like."""
    options = dict(spec.options)
    pools = options.get("runner") == "pooling" or options.get("task") in _POOLING_TASKS
    return pools or (options.get("runner", "auto") == "auto" and "embed" in spec.model_name.lower())


def routes(host: Host) -> Sequence[Route]:
    """The routes, where the engine has them."""
    if not is_pooling(host.spec):
        return ()
    made = Embeddings(host)
    return (
        Route("POST", "/v1/embeddings", made.answer, aside=True),
        Route("POST", "/invocations", made.invoked, aside=True),
    )


class Embeddings:
    """Vectors by text: equal for equal token ids, of length one, and otherwise drawn by chance."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._dimensions = _dimensions(host.spec.model_name)

    def answer(self, exchange: Exchange) -> None:
        """Put the prompts into the core; the vectors come when all are computed."""
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        self._embed(exchange, asked, embedding_bodies.read(asked))

    def invoked(self, exchange: Exchange) -> None:
        """SageMaker's way in, of any model."""
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        if isinstance(asked, dict):
            asked.pop("model", None)
        try:
            request = embedding_bodies.read(asked)
        except Refusal as refusal:
            if refusal.kind != refusals.SCHEMA:
                raise
            raise Refusal("This is nothing to embed.") from None
        self._embed(exchange, asked, request)

    def _embed(self, exchange: Exchange, asked: Any, request: embedding_bodies.Request) -> None:
        served = self._host.served
        _check_model(request.model, served)
        prompts = _prompts(request, asked, served)
        dimensions = self._checked(request.dimensions)
        # A pooling model computes the prompt and no more: the first token is the whole answer.
        call = Call(chat=False, prompts=prompts, max_tokens=1, ignore_eos=True)
        name = exchange.request.headers.get("x-request-id") or self._host.name()
        created = int(self._host.unix_s())
        reply = EmbeddingReply(call, request, dimensions, f"embd-{name}", created, served.name)
        self._host.generate(exchange, reply)

    def _checked(self, dimensions: int | None) -> int:
        if dimensions is None:
            return self._dimensions
        if not 1 <= dimensions <= self._dimensions:
            raise Refusal(f"dimensions must be from 1 to {self._dimensions}, not {dimensions}.")
        return dimensions


class EmbeddingReply(WholeReply):
    """The vectors of all prompts in one document."""

    def __init__(
        self,
        call: Call,
        request: embedding_bodies.Request,
        dimensions: int,
        name: str,
        created: int,
        model: str,
    ) -> None:
        super().__init__(call)
        self._request = request
        self._dimensions = dimensions
        self._head = {"id": name, "object": "list", "created": created, "model": model}

    def response(self) -> Response:
        vectors = [vector(prompt.encoded(), self._dimensions) for prompt in self.call.prompts]
        counts: dict[str, Any] = {"prompt_tokens": self.prompt_tokens}
        counts["total_tokens"] = self.prompt_tokens
        if self._request.encoding_format.startswith("bytes"):
            return self._bytes(vectors, counts)
        data = [
            {"index": index, "object": "embedding", "embedding": self._told(each)}
            for index, each in enumerate(vectors)
        ]
        none = {"prompt_tokens_details": None, "completion_tokens_details": None}
        usage = counts | {"completion_tokens": 0} | none
        document = self._head | {"data": data, "usage": usage}
        return fastapi.document(document)

    def _told(self, values: Sequence[float]) -> Sequence[float] | str:
        if self._request.encoding_format == "float":
            return values
        return base64.b64encode(self._packed(values)).decode()

    def _packed(self, values: Sequence[float]) -> bytes:
        kind = self._request.embed_dtype
        if kind in BITS:
            codes = [small_float(value, *BITS[kind]) for value in values]
            values, letter = codes, "B" if sum(BITS[kind]) < 8 else "H"
        else:
            letter = _FORMATS[kind]
        order = ">" if self._request.endianness == "big" else "<"
        return struct.pack(f"{order}{len(values)}{letter}", *values)

    def _bytes(self, vectors: Sequence[Sequence[float]], counts: dict[str, Any]) -> Response:
        """The numbers alone, and what belongs to them in a header."""
        parts = [self._packed(each) for each in vectors]
        size = len(parts[0])
        place = {"embed_dtype": self._request.embed_dtype, "endianness": self._request.endianness}
        data = [
            {"index": i, **place, "start": i * size, "end": (i + 1) * size}
            | {"shape": [self._dimensions]}
            for i in range(len(parts))
        ]
        told = {name: value for name, value in self._head.items() if name != "object"}
        metadata = ("metadata", json.dumps(told | {"data": data, "usage": counts}))
        headers = () if self._request.encoding_format == "bytes_only" else (metadata,)
        return Response(200, b"".join(parts), "application/octet-stream", headers)


def small_float(value: float, exponent_bits: int, fraction_bits: int) -> int:
    """A number of at most 1 as a float of so many bits, rounded."""
    sign = (value < 0) << (exponent_bits + fraction_bits)
    bias = (1 << (exponent_bits - 1)) - 1
    exponent = max(math.frexp(value)[1] - 1 + bias, 1) if value else 1
    steps = round(math.ldexp(abs(value), bias + fraction_bits - exponent))
    # A number that is large enough has a leading bit, which counts as one of the exponent.
    return sign | ((exponent - 1) << fraction_bits) + steps


def vector(ids: Sequence[int], dimensions: int) -> list[float]:
    """A vector of length one; fewer dimensions are the beginning of more, but for the length."""
    digest = hashlib.blake2b(struct.pack(f"<{len(ids)}q", *ids), digest_size=16).digest()
    rng = random.Random(digest)
    values = [rng.gauss(0.0, 1.0) for _ in range(dimensions)]
    length = math.sqrt(sum(value * value for value in values))
    # As exact as the real one's 32 bits.
    return [float(f"{value / length:.8g}") for value in values]


def _check_model(name: str | None, served: Served) -> None:
    if name and name != served.name:
        known = refusals.unknown_model(name, served.name)
        raise Refusal(str(known), status=known.status, kind=known.kind)


def _prompts(request: embedding_bodies.Request, asked: Any, served: Served) -> tuple[Prompt, ...]:
    """What to embed. Raises Refusal."""
    most = request.truncate_prompt_tokens
    end = request.truncation_side == "left"
    kept = prompting.Kept(served.max_model_tokens if most == -1 else most, end)
    if isinstance(request, embedding_bodies.OfPrompt):
        extensions.media(request)
        if not request.input:
            raise Refusal("input must not be empty.")
        prompts = prompting.of(request.input, served, kept, told=False)
    else:
        protocol.check_template(request)
        said = asked.get("messages", asked.get("input"))
        chats = said if isinstance(request, embedding_bodies.OfChats) else [said]
        prompts = tuple(_chat(each, request, kept) for each in chats)
    for prompt in prompts:
        prompting.check_length(prompt, served)
        rules.known_prompt(prompt.ids)
    return prompts


def _chat(
    said: Sequence[Any],
    request: embedding_bodies.OfChat | embedding_bodies.OfChats,
    kept: prompting.Kept,
) -> Prompt:
    turns = [messages.turn(message) for message in said]
    whole = template.encode(turns, opens_answer=request.add_generation_prompt)
    ids = tuple(prompting.cut(whole, kept))
    return Prompt(len(ids), ids=ids)


def _dimensions(model_name: str) -> int:
    try:
        return models.find(model_name).hidden
    except UnknownName:
        return DEFAULT_DIMENSIONS
