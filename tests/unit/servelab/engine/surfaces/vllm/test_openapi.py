"""What vLLM tells of itself as OpenAPI."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.surfaces.vllm import bodies, openapi


@pytest.fixture
def document(hosted: Callable[..., Any]) -> dict[str, Any]:
    told: dict[str, Any] = hosted(EngineType.VLLM).ask("GET", "/openapi.json").document
    return told


def test_every_operation_of_the_real_one_is_told(document: dict[str, Any]) -> None:
    told = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    generating = {
        (method, each.path or path) for (method, path), each in openapi.OPERATIONS.items()
    } - {("POST", "/v1/embeddings")}
    assert told == generating


def test_operations_have_the_names_of_the_real_one(document: dict[str, Any]) -> None:
    chat = document["paths"]["/v1/chat/completions"]["post"]
    assert chat["summary"] == "Create Chat Completion"
    assert chat["operationId"] == "create_chat_completion_v1_chat_completions_post"
    one = document["paths"]["/v1/responses/{response_id}"]["get"]
    assert one["operationId"] == "retrieve_responses_v1_responses__response_id__get"
    assert [each["name"] for each in one["parameters"]] == ["response_id"]


def test_a_body_is_told_field_by_field(document: dict[str, Any]) -> None:
    content = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
    assert content["application/json"]["schema"]["$ref"].endswith("/ChatCompletionRequest")
    schema = document["components"]["schemas"]["ChatCompletionRequest"]
    assert schema["properties"].keys() == bodies.ChatRequest.model_fields.keys()


def test_whatever_is_referred_to_is_there(document: dict[str, Any]) -> None:
    referred = set(re.findall(r"'#/components/schemas/([^']+)'", str(document)))
    assert referred <= document["components"]["schemas"].keys()
    assert len(referred) > 20


def test_a_model_that_pools_tells_of_that(hosted: Callable[..., Any]) -> None:
    host = hosted(EngineType.VLLM, ("runner", "pooling"))
    paths = host.ask("GET", "/openapi.json").document["paths"]
    assert "/v1/embeddings" in paths
    assert "/v1/chat/completions" not in paths
