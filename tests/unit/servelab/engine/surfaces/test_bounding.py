"""Bodies of millions of small values are refused before their schema is checked."""

import json
import socket
from typing import Any

import aiohttp
import pytest

from modelserve import errors
from modelserve.adapters.clock import SystemClock
from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer
from servelab.engine.surfaces import bounding


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"messages": [{}] * 5000}, id="messages"),
        pytest.param({"messages": [1] * 5000}, id="no messages"),
        pytest.param({"parameters": {"tools": [{}] * 5000}}, id="deeper"),
        pytest.param({"prompt": [[1]] * 30_000}, id="objects"),
        pytest.param([{}] * 30_000, id="a list"),
        pytest.param({"prompt": [1] * 1_100_000}, id="values"),
    ],
)
def test_too_many_values_are_refused(body: Any) -> None:
    with pytest.raises(errors.InputError, match=r"holds"):
        bounding.check(json.dumps(body).encode())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(json.dumps({"prompt": [1] * 200_000}).encode(), id="a long prompt"),
        pytest.param(json.dumps({"prompt": "{[,}" * 100_000}).encode(), id="a text of brackets"),
        pytest.param(json.dumps({"messages": [{"role": "user"}] * 1000}).encode(), id="messages"),
        pytest.param(b"[" * 100_000, id="no JSON"),
        pytest.param(b"," * 9000, id="commas"),
        pytest.param(b"1" * 9000, id="a number"),
    ],
)
def test_what_an_engine_can_answer_is_let_through(body: bytes) -> None:
    bounding.check(body)


def test_a_list_is_found_under_a_name_in_other_letters() -> None:
    body = b'{"mess\\u0061ges": [' + b"1, " * 5000 + b"1]}"
    with pytest.raises(errors.InputError, match="messages holds 5001 entries"):
        bounding.check(body)


PATHS = {
    EngineType.VLLM: "/v1/chat/completions",
    EngineType.SGLANG: "/v1/chat/completions",
    EngineType.TENSORRT_LLM: "/v1/chat/completions",
    EngineType.TGI: "/v1/chat/completions",
    EngineType.TRITON: "/v1/chat/completions",
    EngineType.NIM: "/v1/chat/completions",
}


@pytest.mark.parametrize("engine", PATHS)
async def test_every_engine_refuses_in_its_own_shape(engine: EngineType) -> None:
    body = {"model": "m", "messages": [{}] * 50_000}
    status, told = await answered(engine, PATHS[engine], body)
    assert 400 <= status < 500
    assert "messages holds 50000 entries" in json.dumps(told)


async def answered(engine: EngineType, path: str, body: object) -> tuple[int, Any]:
    config = CoreConfig(8, 512, 8192, 4096)
    spec = EngineSpec("m", "org/model", config, SteadyLaw(0.001), 0.9, 1, profiles.of(engine))
    server = EngineServer(spec, SystemClock())
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    try:
        async with (
            aiohttp.ClientSession(f"http://127.0.0.1:{sock.getsockname()[1]}") as http,
            http.post(path, json=body) as response,
        ):
            return response.status, await response.json(content_type=None)
    finally:
        await server.kill()
