"""Embeddings, which vLLM serves where it runs a model as a pooling one, and then nothing else."""

import base64
import hashlib
import json
import math
import random
import struct
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from modelserve.catalog import models
from modelserve.errors import UnknownName
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.replying import WholeReply
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.vllm import bodies, messages, prompting, protocol, reading, rules
from servelab.engine.surfaces.vllm.messages import Messages
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import template

# Dimensions where the model's shape is not known.
DEFAULT_DIMENSIONS = 4096

_POOLING_TASKS = frozenset({"embed", "embedding", "classify", "reward", "score"})
_FORMATS = {"float32": "f", "float16": "e"}


class EmbeddingRequest(bodies.Body):
    model: str | None = None
    input: list[bodies.TokenId] | list[list[bodies.TokenId]] | str | list[str] | None = None
    messages: Messages | None = None
    add_generation_prompt: bool = False
    dimensions: int | None = None
    encoding_format: Literal["float", "base64", "bytes", "bytes_only"] = "float"
    embed_dtype: Literal["float32", "float16"] = "float32"
    endianness: Literal["native", "little", "big"] = "native"
    truncate_prompt_tokens: Annotated[int, Field(ge=-1)] | None = None


def is_pooling(spec: EngineSpec) -> bool:
    """Whether the engine runs its model for embeddings and the like."""
    options = dict(spec.options)
    pools = options.get("runner") == "pooling" or options.get("task") in _POOLING_TASKS
    return pools or (options.get("runner", "auto") == "auto" and "embed" in spec.model_name.lower())


def routes(host: Host) -> Sequence[Route]:
    """The route, where the engine has it."""
    if not is_pooling(host.spec):
        return ()
    return (Route("POST", "/v1/embeddings", Embeddings(host).answer, aside=True),)


class Embeddings:
    """Vectors by text: equal for equal token ids, of length one, and otherwise drawn by chance."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._dimensions = _dimensions(host.spec.model_name)

    def answer(self, exchange: Exchange) -> None:
        """Put the prompts into the core; the vectors come when all are computed."""
        asked = reading.load(exchange.request.body, exchange.request.content_type)
        request = reading.validate(EmbeddingRequest, asked)
        served = self._host.served
        protocol.check_model(request.model, served)
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
        request: EmbeddingRequest,
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
        order = ">" if self._request.endianness == "big" else "<"
        return struct.pack(f"{order}{len(values)}{_FORMATS[self._request.embed_dtype]}", *values)

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


def vector(ids: Sequence[int], dimensions: int) -> list[float]:
    """A vector of length one; fewer dimensions are the beginning of more, but for the length."""
    digest = hashlib.blake2b(struct.pack(f"<{len(ids)}q", *ids), digest_size=16).digest()
    rng = random.Random(digest)
    values = [rng.gauss(0.0, 1.0) for _ in range(dimensions)]
    length = math.sqrt(sum(value * value for value in values))
    # As exact as the real one's 32 bits.
    return [float(f"{value / length:.8g}") for value in values]


def _prompts(request: EmbeddingRequest, asked: Any, served: Served) -> tuple[Prompt, ...]:
    """What to embed. Raises Refusal."""
    most = request.truncate_prompt_tokens
    kept = prompting.Kept(served.max_model_tokens if most == -1 else most)
    if request.messages is not None:
        turns = [messages.turn(message) for message in asked["messages"]]
        whole = template.encode(turns, opens_answer=request.add_generation_prompt)
        ids = tuple(prompting.cut(whole, kept))
        prompts: tuple[Prompt, ...] = (Prompt(len(ids), ids=ids),)
    elif request.input is None:
        raise Refusal("input must be a text, token ids, or a list of these.", param="input")
    else:
        prompts = prompting.of(request.input, served, kept, told=False)
    for prompt in prompts:
        prompting.check_length(prompt, served)
        rules.known_prompt(prompt.ids)
    return prompts


def _dimensions(model_name: str) -> int:
    try:
        return models.find(model_name).hidden
    except UnknownName:
        return DEFAULT_DIMENSIONS
