"""What vLLM tells of itself as OpenAPI."""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from modelserve.api.spec import EngineType
from servelab.engine.surfaces.vllm import (
    anthropic_bodies,
    batches,
    bodies,
    decisions,
    generative,
    openapi_schemas,
    responses_bodies,
    tokenizing,
)

# The digest of what the real server of 0.33.0 told, with keys in order of the alphabet.
REAL = "0b84f475cd1d67032e9a63525acc4b6b1d1b9382f09ea43f779093253d447103"


@pytest.fixture
def document(hosted: Callable[..., Any]) -> dict[str, Any]:
    told: dict[str, Any] = hosted(EngineType.VLLM).ask("GET", "/openapi.json").document
    return told


def test_it_is_the_real_servers(document: dict[str, Any]) -> None:
    told = json.dumps(document, sort_keys=True, ensure_ascii=False).encode()
    assert hashlib.sha256(told).hexdigest() == REAL


def test_answers_are_told_of_field_by_field(document: dict[str, Any]) -> None:
    told = document["paths"]["/v1/chat/completions"]["post"]["responses"]["200"]["content"]
    name = told["application/json"]["schema"]["$ref"].rpartition("/")[2]
    fields = document["components"]["schemas"][name]["properties"]
    assert fields["choices"]["items"]["$ref"].endswith("ChatCompletionResponseChoice")
    assert "text/event-stream" in told


# Looked for before the schema is.
REFUSED = {"prompt"}
BODIES: dict[str, type[BaseModel]] = {
    "ChatCompletionRequest": bodies.ChatRequest,
    "CompletionRequest": bodies.CompletionRequest,
    "BatchChatCompletionRequest": batches.BatchRequest,
    "ResponsesRequest": responses_bodies.ResponsesRequest,
    "AnthropicMessagesRequest": anthropic_bodies.MessagesRequest,
    "AnthropicCountTokensRequest": anthropic_bodies.CountRequest,
    "GenerativeScoringRequest": generative.ScoringRequest,
    "DecisionRequest": decisions.DecisionRequest,
    "StructuredDecisionRequest": decisions.StructuredRequest,
    "TokenizeCompletionRequest": tokenizing.Prompt,
    "TokenizeChatRequest": tokenizing.Chat,
    "DetokenizeRequest": tokenizing.Tokens,
}


@pytest.mark.parametrize(("name", "kind"), BODIES.items(), ids=BODIES)
def test_bodies_are_taken_as_they_are_told(name: str, kind: type[BaseModel]) -> None:
    told = openapi_schemas.component(name, openapi_schemas.table()["schemas"][name])
    here = {field.alias or field_name for field_name, field in kind.model_fields.items()}
    assert told["properties"].keys() - here <= REFUSED


def test_a_model_that_pools_tells_of_that(hosted: Callable[..., Any]) -> None:
    host = hosted(EngineType.VLLM, ("runner", "pooling"))
    told = host.ask("GET", "/openapi.json").document
    assert "EmbeddingChatInputRequest" in told["components"]["schemas"]
    assert "/v1/embeddings" in told["paths"]
    assert "/v1/chat/completions" not in told["paths"]
