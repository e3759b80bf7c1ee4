"""What vLLM 0.33 tells of itself as OpenAPI: paths, operations, and what bodies hold.

Names are the real server's; schemas are those of the bodies that are taken here, of which messages
and items of responses are told no more than that they are there.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from servelab.engine.exchange import JSON, Route
from servelab.engine.surfaces.vllm import (
    anthropic_bodies,
    batches,
    bodies,
    decisions,
    embeddings,
    generative,
    responses_bodies,
)

Body = tuple[str, type[BaseModel]]  # its name there, and what it is here

_SCHEMAS = "#/components/schemas/"
_MESSAGES = "AnthropicMessagesRequest"
_REFUSED = (400, 404, 500)
# A model in whose prompts there is no room for it, or a flag that is not given.
_MAYBE_NOT = (*_REFUSED, 501)
_ERROR = {
    "properties": {
        "message": {"type": "string"},
        "type": {"type": "string"},
        "param": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "code": {"type": "integer"},
    },
    "type": "object",
    "required": ["message", "type", "code"],
}


class Operation(NamedTuple):
    """One method of a path: the name of its handler, the bodies it takes, how it may refuse."""

    name: str
    bodies: tuple[Body, ...] = ()
    refuses: tuple[int, ...] = ()
    path: str = ""  # as it is told, if not as it is routed


def _taking(
    name: str, body: str, kind: type[BaseModel], refuses: tuple[int, ...] = _REFUSED
) -> Operation:
    return Operation(name, ((body, kind),), refuses)


_TOKENIZE = (
    ("TokenizeCompletionRequest", bodies.TokenizePrompt),
    ("TokenizeChatRequest", bodies.TokenizeChat),
)
_CHAT, _RESPONSE = "/v1/chat/completions", "/v1/responses/{response_id}"
OPERATIONS: Mapping[tuple[str, str], Operation] = {
    ("GET", "/load"): Operation("get_server_load_metrics"),
    ("GET", "/version"): Operation("show_version"),
    ("GET", "/kv_event_sources"): Operation("kv_event_sources"),
    ("GET", "/health"): Operation("health"),
    ("GET", "/metrics"): Operation("metrics"),
    ("POST", "/tokenize"): Operation("tokenize", _TOKENIZE, _MAYBE_NOT),
    ("POST", "/detokenize"): _taking("detokenize", "DetokenizeRequest", bodies.DetokenizeRequest),
    ("GET", "/v1/models"): Operation("show_available_models"),
    ("POST", "/v1/systemone"): _taking(
        *("create_structured_decision", "StructuredDecisionRequest"),
        *(decisions.StructuredRequest, _MAYBE_NOT),
    ),
    ("POST", "/v1/decisions"): _taking(
        *("create_decision", "DecisionRequest", decisions.DecisionRequest, _MAYBE_NOT)
    ),
    ("GET", "/ping"): Operation("ping"),
    ("POST", "/ping"): Operation("ping"),
    ("POST", "/invocations"): Operation("decorated_func", refuses=(400, 415, 500)),
    ("POST", _CHAT): _taking(
        *("create_chat_completion", "ChatCompletionRequest", bodies.ChatRequest, _MAYBE_NOT)
    ),
    ("POST", f"{_CHAT}/batch"): _taking(
        *("create_batch_chat_completion", "BatchChatCompletionRequest"),
        *(batches.BatchRequest, _MAYBE_NOT),
    ),
    ("POST", "/v1/responses"): _taking(
        *("create_responses", "ResponsesRequest", responses_bodies.ResponsesRequest)
    ),
    ("GET", "/v1/responses/{id}"): Operation("retrieve_responses", path=_RESPONSE),
    ("POST", "/v1/responses/{id}/cancel"): Operation(
        "cancel_responses", path=f"{_RESPONSE}/cancel"
    ),
    ("POST", "/v1/completions"): _taking(
        *("create_completion", "CompletionRequest", bodies.CompletionRequest)
    ),
    ("POST", "/v1/messages"): _taking(
        *("create_messages", _MESSAGES, anthropic_bodies.MessagesRequest)
    ),
    ("POST", "/v1/messages/count_tokens"): _taking(
        *("count_tokens", "AnthropicCountTokensRequest", anthropic_bodies.CountRequest)
    ),
    ("POST", "/generative_scoring"): _taking(
        *("create_generative_scoring", "GenerativeScoringRequest", generative.ScoringRequest)
    ),
    ("POST", "/v1/embeddings"): _taking(
        *("create_embedding", "EmbeddingRequest", embeddings.EmbeddingRequest)
    ),
    ("POST", "/scale_elastic_ep"): Operation("scale_elastic_ep", refuses=(400, 408, 500)),
    ("POST", "/is_scaling_elastic_ep"): Operation("is_scaling_elastic_ep"),
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """What is told of those of the routes that are told of at all."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        found = OPERATIONS.get((route.method, route.path))
        if found is not None:
            path = found.path or route.path
            paths.setdefault(path, {})[route.method.lower()] = _told(found, path, route.method)
    info = {"title": "FastAPI", "version": "0.1.0"}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": _components()}


def _told(operation: Operation, path: str, method: str) -> dict[str, Any]:
    name = re.sub(r"\W", "_", f"{operation.name}{path}")
    told: dict[str, Any] = {
        "summary": operation.name.replace("_", " ").title(),
        "operationId": f"{name}_{method.lower()}",
    }
    parts = re.findall(r"\{(\w+)\}", path)
    if parts:
        told["parameters"] = [
            {"name": part, "in": "path", "required": True, "schema": {"type": "string"}}
            for part in parts
        ]
    if operation.bodies:
        schemas = [_refer(name) for name, _ in operation.bodies]
        schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas, "title": "Request"}
        told["requestBody"] = {"content": {JSON: {"schema": schema}}, "required": True}
    told["responses"] = {"200": {"description": "Successful Response"}}
    for status in operation.refuses:
        content = {JSON: {"schema": _refer("ErrorResponse")}}
        told["responses"][str(status)] = {
            "description": HTTPStatus(status).phrase,
            "content": content,
        }
    return told


def _refer(name: str) -> dict[str, str]:
    return {"$ref": _SCHEMAS + name}


@functools.cache
def _components() -> dict[str, Any]:
    """The schemas of all bodies under their names, and of what they are made of."""
    named = [body for operation in OPERATIONS.values() for body in operation.bodies]
    found, told = models_json_schema(
        [(kind, "validation") for _, kind in named], ref_template=_SCHEMAS + "{model}"
    )
    schemas: dict[str, Any] = dict(told["$defs"])
    for name, kind in named:
        here = found[kind, "validation"]["$ref"].removeprefix(_SCHEMAS)
        schemas[name] = {**schemas.pop(here), "title": name}
    info = {"properties": {"error": _refer("ErrorInfo")}, "type": "object", "required": ["error"]}
    schemas |= {"ErrorInfo": _ERROR, "ErrorResponse": info}
    return {"schemas": schemas}
