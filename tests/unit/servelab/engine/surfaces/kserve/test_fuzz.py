"""Whatever is sent to KServe's model server is taken, or refused as it or its vLLM refuses."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modelserve.api.spec import EngineType
from modelserve.engines import kserve
from modelserve.errors import ModelServeError
from servelab.engine import exchange as exchanges
from servelab.engine.surfaces.kserve import surface
from servelab.engine.surfaces.vllm import bodies, embedding_bodies

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = sorted(
    {
        *bodies.ChatRequest.model_fields,
        *bodies.CompletionRequest.model_fields,
        *embedding_bodies.OfPrompt.model_fields,
        *surface.RerankRequest.model_fields,
    }
)
GOOD = {
    "model": "llama-8b",
    "messages": [{"role": "user", "content": "hi"}],
    "prompt": "hi",
    "input": "hi",
}
DOCUMENTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=3)
NAMES = st.sampled_from(["llama-8b", "other", "", "é", "a b"])
BYTES = st.binary(max_size=40) | st.text('{}[]:,"a1').map(str.encode)
BEGINNINGS = ["/v1/models/", "/v2/models/", "/v2/repository/models/", "/openai/v1/models/"]
# None that unloads the model: all that came after would be the same.
ENDS = ["", "/", ":predict", "/infer", "/ready", "/versions/1", "/versions/x/ready", "/load"]
OPENAI = [f"/openai{path}" for path, _, _ in surface._INNER]
FEW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

Ask = Callable[[str, str, bytes], int]


@pytest.fixture(params=["generate", "pooling"])
def ask(hosted: Callable[..., Any], request: pytest.FixtureRequest) -> Ask:
    """Puts a request to the server; the status if it was refused, 200 if it was taken."""
    host = hosted(EngineType.VLLM, kserve.FRONT_END, ("runner", request.param))

    def put(method: str, path: str, body: bytes) -> int:
        asked = exchanges.Request(method, path, path, {"content-type": "application/json"}, body)
        for route in host.surface.routes():
            found = exchanges.pattern(route.path).fullmatch(path)
            if route.method == method and found is not None:
                exchange = host.exchange(asked._replace(parameters=found.groupdict()))
                try:
                    route.handler(exchange)
                except ModelServeError as refusal:  # any other error is a fault of ours
                    return int(host.surface.refused(asked, refusal).status)
                return 200
        return int(host.surface.not_found(asked).status)

    return put


@FEW
@given(path=st.sampled_from(OPENAI), fields=DOCUMENTS, good=st.booleans())
def test_any_document_is_taken_or_refused(
    ask: Ask, path: str, fields: dict[str, Any], good: bool
) -> None:
    document = GOOD | fields if good else fields
    status = ask("POST", path, json.dumps(document).encode())
    assert status in (200, 400, 404, 422, 500)


@FEW
@given(path=st.sampled_from(OPENAI), body=BYTES)
def test_any_bytes_are_refused(ask: Ask, path: str, body: bytes) -> None:
    assert ask("POST", path, body) in (400, 404, 422)


@FEW
@given(
    method=st.sampled_from(["GET", "POST"]),
    beginning=st.sampled_from(BEGINNINGS),
    name=NAMES,
    rest=st.sampled_from(ENDS),
    body=VALUES.map(lambda value: json.dumps(value).encode()),
)
def test_any_model_is_known_or_not(
    ask: Ask, method: str, beginning: str, name: str, rest: str, body: bytes
) -> None:
    status = ask(method, f"{beginning}{name}{rest}", body)
    assert status in (200, 307, 404, 500, 501, 503)
