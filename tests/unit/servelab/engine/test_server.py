"""One engine over real HTTP on the loopback: its life, its queue, what it tells of itself."""

import asyncio
import re
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import pytest
import yarl

from modelserve.adapters import gauges
from modelserve.api.spec import EngineType
from modelserve.engines import profiles, triton
from servelab.engine.httpd.loopback import turns

Serve = Callable[..., AbstractAsyncContextManager[Any]]

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
LARGE = "x" * 100_000  # enough to be read aside
FOREVER: dict[str, Any] = CHAT | {"ignore_eos": True, "max_tokens": 8000, "stream": True}


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (CHAT | {"model": "other"}, 404, "NotFoundError"),
        (CHAT | {"max_tokens": 8193}, 400, "BadRequestError"),
        (CHAT | {"messages": [{"role": "user", "content": "hi " * 9000}]}, 400, "BadRequestError"),
        ([], 400, "Bad Request"),
    ],
)
async def test_bad_requests_get_an_error_body(
    running: Serve, body: object, status: int, kind: str
) -> None:
    async with running() as engine:
        answered, answer = await engine.post("/v1/chat/completions", body)
    assert (answered, answer["error"]["type"], answer["error"]["code"]) == (status, kind, status)


async def test_a_full_queue_answers_503_and_is_counted(running: Serve) -> None:
    async with (
        running(10.0, slots=1, queue_limit=0) as engine,
        engine.http.post("/v1/chat/completions", json=FOREVER),
    ):
        await engine.until("vllm:num_requests_running", 1)
        status, body = await engine.post("/v1/chat/completions", CHAT)
        refused = r'vllm:admission_rejections_total(?=.*queued_reqs"})'
        assert (status, body["error"]["code"], await engine.metric(refused)) == (503, 503, 1)


@pytest.mark.parametrize("padding", ["", LARGE], ids=["small", "large"])
async def test_a_full_queue_answers_503_whatever_the_size(running: Serve, padding: str) -> None:
    async with (
        running(10.0, slots=1, queue_limit=0) as engine,
        engine.http.post("/v1/chat/completions", json=FOREVER),
    ):
        await engine.until("vllm:num_requests_running", 1)
        status, _ = await engine.post("/v1/chat/completions", CHAT | {"user": padding})
        assert (status, engine.server.driver.open_requests) == (503, 1)


async def test_a_large_request_is_streamed_as_any_other(running: Serve) -> None:
    body = FOREVER | {"max_tokens": 3, "user": LARGE}
    async with running() as engine:
        *events, done = await engine.events("/v1/chat/completions", body)
    assert (len(events), done) == (4, "[DONE]")


async def test_an_engine_that_is_killed_takes_up_no_large_request(running: Serve) -> None:
    async with running() as engine:
        posted = asyncio.create_task(engine.post("/v1/chat/completions", CHAT | {"user": LARGE}))
        while not engine.server.http.open_exchanges:
            await turns(1)
        await engine.server.kill()
        with pytest.raises(aiohttp.ClientError):
            await posted
        assert engine.server.driver.open_requests == 0


async def test_a_client_that_hangs_up_frees_its_slot(running: Serve) -> None:
    async with running() as engine:
        async with engine.http.post("/v1/chat/completions", json=FOREVER) as response:
            await response.content.readline()
            response.close()
        await engine.until("vllm:num_requests_running", 0)
        assert engine.server.driver.open_requests == 0


async def test_a_drain_lets_a_stream_finish_and_refuses_new_connections(running: Serve) -> None:
    async with running() as engine:
        body = FOREVER | {"max_tokens": 50}
        async with engine.http.post("/v1/chat/completions", json=body) as response:
            drained = asyncio.create_task(engine.server.drain(60.0))
            text = await response.text()
        assert (await drained, text.count("data: "), text.endswith("[DONE]\n\n")) == (
            True,
            52,
            True,
        )
        with pytest.raises(aiohttp.ClientConnectorError):
            await engine.http.get("/health")


async def test_a_drain_whose_grace_is_over_cuts_the_stream(running: Serve) -> None:
    async with (
        running() as engine,
        engine.http.post("/v1/chat/completions", json=FOREVER) as response,
    ):
        assert not await engine.server.drain(0.01)
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_health_models_and_version_answer(running: Serve) -> None:
    async with running() as engine:
        async with engine.http.get("/health") as response:
            assert (response.status, await response.read()) == (200, b"")
        async with engine.http.get("/v1/models") as response:
            model = (await response.json())["data"][0]
    assert (model["id"], model["root"], model["max_model_len"]) == ("m", "org/model", 8192)


async def test_unknown_routes_and_methods_answer_as_the_real_server(running: Serve) -> None:
    async with running() as engine:
        async with engine.http.get("/v1/nothing") as response:
            assert (response.status, await response.json()) == (404, {"detail": "Not Found"})
        async with engine.http.get("/v1/completions") as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")


async def test_each_request_is_logged_as_uvicorn_does(running: Serve) -> None:
    async with running() as engine, engine.http.get("/health"):
        assert re.search(
            r'INFO:     127\.0\.0\.1:\d+ - "GET /health HTTP/1.1" 200 OK', engine.lines[0]
        )


async def test_a_redirect_holds_no_character_that_would_end_its_line(running: Serve) -> None:
    async with running() as engine:
        url = yarl.URL("/v1/responses/a%0D%0Ab/", encoded=True)
        async with engine.http.get(url, allow_redirects=False) as response:
            assert response.headers["Location"].endswith("/v1/responses/a%0D%0Ab")


async def test_a_slash_too_many_is_redirected(running: Serve) -> None:
    async with running() as engine:
        async with engine.http.get("/v1/models/?a=1", allow_redirects=False) as response:
            where = response.url.with_path("/v1/models").with_query(a=1)
            assert (response.status, response.headers["Location"]) == (307, str(where))
        async with engine.http.get("/v1/nothing/", allow_redirects=False) as response:
            assert response.status == 404


@pytest.mark.parametrize("engine", EngineType)
async def test_every_engine_answers_at_the_paths_of_its_profile(
    running: Serve, engine: EngineType
) -> None:
    profile = profiles.of(engine)
    async with running(engine=engine) as served:
        for path in (profile.health_path, profile.startup_path):
            async with served.http.get(path) as response:
                assert response.status == 200
        async with served.http.get(profile.metrics_path) as response:
            text = await response.read()
    assert gauges.parse_queue(text, profile.metrics) == (0, 0, 0)


async def test_a_prompt_asked_again_is_found_in_the_prefix_cache(running: Serve) -> None:
    body = {"model": "m", "prompt": [7] * 40, "max_tokens": 2}
    async with running(prefix_caching=True) as engine:
        for _ in range(2):
            await engine.post("/v1/completions", body)
        assert await engine.metric("vllm:prefix_cache_queries_total") == 80.0
        assert await engine.metric("vllm:prefix_cache_hits_total") == 32.0


async def test_the_next_turn_of_a_chat_finds_the_one_before_with_its_answer(running: Serve) -> None:
    async with running(prefix_caching=True) as engine:
        said = [{"role": "user", "content": "hello " * 30}]
        ask = {"model": "m", "max_tokens": 40, "ignore_eos": True}
        _, first = await engine.post("/v1/chat/completions", ask | {"messages": said})
        said += [first["choices"][0]["message"] | {"role": "assistant"}]
        said += [{"role": "user", "content": "more"}]
        said = [{"role": each["role"], "content": each["content"]} for each in said]
        await engine.post("/v1/chat/completions", ask | {"messages": said})
        # The last token of an answer is never computed.
        known = first["usage"]["total_tokens"] - 1
        assert await engine.metric("vllm:prefix_cache_hits_total") == known // 16 * 16


async def test_tritons_metrics_are_on_a_port_of_their_own_too(running: Serve) -> None:
    native = (triton.NATIVE,)
    async with running(engine=EngineType.TRITON, options=native) as engine:
        (port,) = engine.server.other_ports
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        await engine.server.start_other(port, sock)
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        async with engine.http.get(yarl.URL(f"{url}/metrics")) as response:
            assert (port, "nv_inference_count" in await response.text()) == (8002, True)
        async with engine.http.get(yarl.URL(f"{url}/v2")) as response:
            assert response.status == 404


async def test_sglang_takes_requests_until_none_is_left(running: Serve) -> None:
    async with running(engine=EngineType.SGLANG) as engine:
        async with engine.http.post("/v1/chat/completions", json=FOREVER):
            drained = asyncio.create_task(engine.server.drain(60.0))
            await asyncio.sleep(0)
            status, _ = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 1})
            async with engine.http.get("/health") as health:
                assert (status, health.status) == (200, 503)
            assert not drained.done()
        # Its client has left.
        assert await drained
