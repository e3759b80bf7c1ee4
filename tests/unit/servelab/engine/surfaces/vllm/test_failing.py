"""Answers that no token may begin, and checks that come once a stream is open."""

from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

CIRCLE = {"$ref": "#"}
SAID = [{"role": "user", "content": "hi"}]
FORM = {"type": "json_schema", "name": "x", "schema": CIRCLE}
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": SAID, "structured_outputs": {"json": CIRCLE}},
    "/v1/completions": {"prompt": "hi", "structured_outputs": {"json": CIRCLE}},
    "/v1/responses": {"input": "hi", "text": {"format": FORM}},
    "/v1/messages": {
        "model": "m",
        "messages": SAID,
        "max_tokens": 5,
        "output_config": {"format": FORM},
    },
    "/v1/chat/completions/batch": {"messages": [SAID], "structured_outputs": {"json": CIRCLE}},
}


Running = Callable[..., Any]


@pytest.mark.parametrize("path", BODIES)
async def test_an_answer_that_no_token_may_begin_is_an_engine_that_failed(
    running: Running, path: str
) -> None:
    async with running() as engine:
        status, told = await engine.post(path, BODIES[path])
    assert status == 500
    assert told["error"]["type"] in ("InternalServerError", "api_error")


async def test_a_stream_begins_and_tells_that_it_failed(running: Running) -> None:
    path = "/v1/chat/completions"
    async with running() as engine:
        first, error, done = await engine.events(path, BODIES[path] | {"stream": True})
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert (error["error"]["code"], done) == (500, "[DONE]")


SCHEMAS = {"circle": CIRCLE, "nowhere": {"$ref": "#/nope"}}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
async def test_a_stream_of_the_responses_api_is_cut(running: Running, schema: Any) -> None:
    body = {"input": "hi", "text": {"format": FORM | {"schema": schema}}, "stream": True}
    async with running() as engine, engine.http.post("/v1/responses", json=body) as response:
        lines = [await response.content.readline() for _ in range(6)]
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.readline()
    assert lines[::3] == [b"event: response.created\n", b"event: response.in_progress\n"]


async def test_a_late_refusal_in_anthropics_stream_is_an_event_of_its_own(
    running: Running,
) -> None:
    form = {"format": FORM | {"schema": {"$ref": "#/nope"}}}
    body = BODIES["/v1/messages"] | {"output_config": form, "stream": True}
    async with running() as engine, engine.http.post("/v1/messages", json=body) as response:
        assert response.status == 200
        text = await response.text()
    assert text.startswith('event: error\ndata: {"type":"error"')
