"""One engine over real HTTP on the loopback, with a small fast model of time."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
import yarl

from modelserve.adapters import gauges
from modelserve.adapters.clock import SystemClock
from modelserve.api.spec import EngineType
from modelserve.engines import profiles, triton
from servelab.engine.assembly import EngineSpec
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.server import EngineServer

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
FOREVER: dict[str, Any] = CHAT | {"ignore_eos": True, "max_tokens": 8000, "stream": True}

# What the operator's own launch switches on, where an engine has it off.
METRICS_ON = {
    EngineType.SGLANG: (("enable-metrics", ""),),
    EngineType.TENSORRT_LLM: (("return-perf-metrics", ""), ("enable-iter-perf-stats", "")),
}


class Running:
    """A served engine and a client for it."""

    def __init__(self, server: EngineServer, http: aiohttp.ClientSession, lines: list[str]) -> None:
        self.server = server
        self.http = http
        self.lines = lines

    async def post(self, path: str, body: object) -> tuple[int, dict[str, Any]]:
        async with self.http.post(path, json=body) as response:
            return response.status, await response.json()

    async def events(self, path: str, body: object) -> list[Any]:
        async with self.http.post(path, json=body) as response:
            text = await response.text()
        datas = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        return [data if data == "[DONE]" else json.loads(data) for data in datas]

    async def metric(self, name: str) -> float:
        async with self.http.get("/metrics") as response:
            found = re.search(rf"^{name}{{[^}}]*}} (\S+)$", await response.text(), re.MULTILINE)
        assert found is not None
        return float(found[1])

    async def until(self, name: str, value: float) -> None:
        """Wait until a metric has this value."""
        while await self.metric(name) != value:
            pass


@asynccontextmanager
async def running(
    step_s: float = 0.001,
    *,
    slots: int = 8,
    queue_limit: int | None = None,
    engine: EngineType = EngineType.VLLM,
    prefix_caching: bool = False,
    options: tuple[tuple[str, str], ...] | None = None,
) -> AsyncIterator[Running]:
    config = CoreConfig(
        *(slots, 512, 8192, 4096), queue_limit=queue_limit, prefix_caching=prefix_caching
    )
    spec = EngineSpec(
        *("m", "org/model", config, SteadyLaw(step_s), 0.9, 1, profiles.of(engine)),
        options=METRICS_ON.get(engine, ()) if options is None else options,
    )
    lines: list[str] = []
    server = EngineServer(spec, SystemClock(), lines.append)
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    await server.start(sock)
    base = f"http://127.0.0.1:{sock.getsockname()[1]}"
    async with aiohttp.ClientSession(base) as http:
        try:
            yield Running(server, http, lines)
        finally:
            await server.kill()


async def test_a_chat_answer_has_the_words_it_counts() -> None:
    async with running() as engine:
        status, body = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 5})
    choice = body["choices"][0]
    assert (status, choice["finish_reason"], body["usage"]["completion_tokens"]) == (
        200,
        "length",
        5,
    )
    assert len(choice["message"]["content"].split()) == 5


async def test_an_unforced_answer_ends_by_itself() -> None:
    async with running(0.0001) as engine:
        _, body = await engine.post("/v1/chat/completions", CHAT)
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_a_stream_is_role_then_tokens_then_reason_then_usage_then_done() -> None:
    body = CHAT | {"max_tokens": 4, "stream": True, "stream_options": {"include_usage": True}}
    async with running() as engine:
        *events, usage, done = await engine.events("/v1/chat/completions", body)
    deltas = [event["choices"][0]["delta"] for event in events]
    assert deltas[0] == {"role": "assistant", "content": ""}
    assert all(set(delta) == {"content"} for delta in deltas[1:])
    assert [event["choices"][0]["finish_reason"] for event in events] == [*[None] * 4, "length"]
    assert (usage["choices"], usage["usage"]["completion_tokens"], done) == ([], 4, "[DONE]")


async def test_streamed_and_whole_text_are_the_same_for_the_same_seed() -> None:
    body = CHAT | {"max_tokens": 30, "seed": 4}
    async with running() as engine:
        _, whole = await engine.post("/v1/chat/completions", body)
        events = await engine.events("/v1/chat/completions", body | {"stream": True})
    text = "".join(event["choices"][0]["delta"]["content"] for event in events[:-1])
    assert text == whole["choices"][0]["message"]["content"]


async def test_a_text_completion_streams_each_prompt_as_its_own_choice() -> None:
    body = {"model": "m", "prompt": ["hello", "you"], "max_tokens": 3, "stream": True}
    async with running() as engine:
        *events, _ = await engine.events("/v1/completions", body)
    indexes = [event["choices"][0]["index"] for event in events]
    assert sorted(indexes) == [0, 0, 0, 1, 1, 1]


async def test_n_answers_count_the_prompt_once() -> None:
    async with running() as engine:
        _, one = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 5})
        _, two = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 5, "n": 2})
    assert two["usage"]["prompt_tokens"] == one["usage"]["prompt_tokens"]
    assert two["usage"]["completion_tokens"] == 10


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (CHAT | {"model": "other"}, 404, "NotFoundError"),
        (CHAT | {"max_tokens": 8193}, 400, "BadRequestError"),
        (CHAT | {"messages": [{"role": "user", "content": "hi " * 9000}]}, 400, "BadRequestError"),
        ([], 400, "Bad Request"),
    ],
)
async def test_bad_requests_get_an_error_body(body: object, status: int, kind: str) -> None:
    async with running() as engine:
        answered, answer = await engine.post("/v1/chat/completions", body)
    assert (answered, answer["error"]["type"], answer["error"]["code"]) == (status, kind, status)


async def test_a_full_queue_answers_503_and_is_counted() -> None:
    async with (
        running(10.0, slots=1, queue_limit=0) as engine,
        engine.http.post("/v1/chat/completions", json=FOREVER),
    ):
        await engine.until("vllm:num_requests_running", 1)
        status, body = await engine.post("/v1/chat/completions", CHAT)
        refused = r'vllm:admission_rejections_total(?=.*queued_reqs"})'
        assert (status, body["error"]["code"], await engine.metric(refused)) == (503, 503, 1)


async def test_a_client_that_hangs_up_frees_its_slot() -> None:
    async with running() as engine:
        async with engine.http.post("/v1/chat/completions", json=FOREVER) as response:
            await response.content.readline()
            response.close()
        await engine.until("vllm:num_requests_running", 0)
        assert engine.server.driver.open_requests == 0


async def test_a_drain_lets_a_stream_finish_and_refuses_new_connections() -> None:
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


async def test_a_drain_whose_grace_is_over_cuts_the_stream() -> None:
    async with (
        running() as engine,
        engine.http.post("/v1/chat/completions", json=FOREVER) as response,
    ):
        assert not await engine.server.drain(0.01)
        with pytest.raises(aiohttp.ClientError):
            await response.read()


async def test_health_models_and_version_answer() -> None:
    async with running() as engine:
        async with engine.http.get("/health") as response:
            assert (response.status, await response.read()) == (200, b"")
        async with engine.http.get("/v1/models") as response:
            model = (await response.json())["data"][0]
    assert (model["id"], model["root"], model["max_model_len"]) == ("m", "org/model", 8192)


async def test_unknown_routes_and_methods_answer_as_the_real_server() -> None:
    async with running() as engine:
        async with engine.http.get("/v1/nothing") as response:
            assert (response.status, await response.json()) == (404, {"detail": "Not Found"})
        async with engine.http.get("/v1/completions") as response:
            assert (response.status, response.headers["Allow"]) == (405, "POST")


async def test_each_request_is_logged_as_uvicorn_does() -> None:
    async with running() as engine, engine.http.get("/health"):
        assert re.search(
            r'INFO:     127\.0\.0\.1:\d+ - "GET /health HTTP/1.1" 200 OK', engine.lines[0]
        )


async def test_a_stop_text_ends_the_answer_before_it() -> None:
    body = CHAT | {"max_tokens": 30, "seed": 4}
    async with running() as engine:
        _, whole = await engine.post("/v1/chat/completions", body)
        words = whole["choices"][0]["message"]["content"].split()
        _, cut = await engine.post("/v1/chat/completions", body | {"stop": f" {words[5]}"})
    (choice,) = cut["choices"]
    assert choice["message"]["content"] == " ".join(words[:5])
    assert (choice["finish_reason"], choice["stop_reason"]) == ("stop", f" {words[5]}")
    assert cut["usage"]["completion_tokens"] == 6


async def test_a_stream_holds_back_what_may_belong_to_a_stop() -> None:
    body = CHAT | {"max_tokens": 30, "seed": 4, "stop": ["e", "sing a song"]}
    async with running() as engine:
        _, whole = await engine.post("/v1/chat/completions", body)
        events = await engine.events("/v1/chat/completions", body | {"stream": True})
    choices = [event["choices"][0] for event in events[:-1]]
    text = "".join(choice["delta"]["content"] for choice in choices)
    assert text == whole["choices"][0]["message"]["content"]
    assert choices[-1]["stop_reason"] == "e"


async def test_several_choices_are_streamed_in_turns() -> None:
    body = CHAT | {"max_tokens": 3, "stream": True, "n": 2}
    async with running() as engine:
        *events, _ = await engine.events("/v1/chat/completions", body)
    assert [event["choices"][0]["index"] for event in events] == [0, 1] * 4


async def test_log_probabilities_come_with_every_token() -> None:
    body = CHAT | {"max_tokens": 3, "logprobs": True, "top_logprobs": 2}
    async with running() as engine:
        _, answer = await engine.post("/v1/chat/completions", body)
    content = answer["choices"][0]["logprobs"]["content"]
    assert [len(token["top_logprobs"]) for token in content] == [2, 2, 2]
    text = "".join(token["token"] for token in content)
    assert text == answer["choices"][0]["message"]["content"]


async def test_the_offsets_of_an_echo_count_from_its_beginning() -> None:
    body = {"model": "m", "prompt": "hello you", "max_tokens": 2, "echo": True, "logprobs": 1}
    async with running() as engine:
        _, answer = await engine.post("/v1/completions", body)
        *events, _ = await engine.events("/v1/completions", body | {"stream": True})
    told = answer["choices"][0]["logprobs"]
    assert (len(told["tokens"]), told["text_offset"][0], told["token_logprobs"][0]) == (4, 0, None)
    offsets = [
        offset for each in events for offset in each["choices"][0]["logprobs"]["text_offset"]
    ]
    assert (len(offsets), offsets) == (4, sorted(offsets))


async def test_a_refusal_from_within_comes_as_an_event_of_a_stream() -> None:
    body = CHAT | {"stream": True, "logprobs": True, "top_logprobs": 21}
    async with running() as engine:
        error, done = await engine.events("/v1/chat/completions", body)
    assert (error["error"]["param"], done) == ("logprobs", "[DONE]")


async def test_messages_are_answered_in_anthropics_shape() -> None:
    body = CHAT | {"max_tokens": 4}
    async with running() as engine:
        _, answer = await engine.post("/v1/messages", body)
        status, refused = await engine.post("/v1/messages", body | {"model": "other"})
        async with engine.http.post("/v1/messages", json=body | {"stream": True}) as response:
            names = re.findall(r"^event: (\w+)$", await response.text(), re.MULTILINE)
    assert (answer["stop_reason"], answer["usage"]["output_tokens"]) == ("max_tokens", 4)
    assert (status, refused["type"], refused["error"]["type"]) == (404, "error", "not_found_error")
    deltas = ["content_block_start", *["content_block_delta"] * 4, "content_block_stop"]
    assert names == ["message_start", *deltas, "message_delta", "message_stop"]


async def test_a_response_is_told_whole_and_as_events() -> None:
    body = {"input": "hello", "max_output_tokens": 3}
    async with running() as engine:
        _, answer = await engine.post("/v1/responses", body)
        async with engine.http.post("/v1/responses", json=body | {"stream": True}) as response:
            names = re.findall(r"^event: (\S+)$", await response.text(), re.MULTILINE)
    assert (answer["status"], answer["usage"]["output_tokens"]) == ("incomplete", 3)
    assert (names[0], names.count("response.output_text.delta"), names[-1]) == (
        "response.created",
        3,
        "response.incomplete",
    )


async def test_a_redirect_holds_no_character_that_would_end_its_line() -> None:
    async with running() as engine:
        url = yarl.URL("/v1/responses/a%0D%0Ab/", encoded=True)
        async with engine.http.get(url, allow_redirects=False) as response:
            assert response.headers["Location"].endswith("/v1/responses/a%0D%0Ab")


async def test_a_slash_too_many_is_redirected() -> None:
    async with running() as engine:
        async with engine.http.get("/v1/models/?a=1", allow_redirects=False) as response:
            where = response.url.with_path("/v1/models").with_query(a=1)
            assert (response.status, response.headers["Location"]) == (307, str(where))
        async with engine.http.get("/v1/nothing/", allow_redirects=False) as response:
            assert response.status == 404


@pytest.mark.parametrize("engine", EngineType)
async def test_every_engine_answers_at_the_paths_of_its_profile(engine: EngineType) -> None:
    profile = profiles.of(engine)
    async with running(engine=engine) as served:
        for path in (profile.health_path, profile.startup_path):
            async with served.http.get(path) as response:
                assert response.status == 200
        async with served.http.get(profile.metrics_path) as response:
            text = await response.read()
    assert gauges.parse_queue(text, profile.metrics) == (0, 0, 0)


async def test_a_prompt_asked_again_is_found_in_the_prefix_cache() -> None:
    body = {"model": "m", "prompt": [7] * 40, "max_tokens": 2}
    async with running(prefix_caching=True) as engine:
        for _ in range(2):
            await engine.post("/v1/completions", body)
        assert await engine.metric("vllm:prefix_cache_queries_total") == 80.0
        assert await engine.metric("vllm:prefix_cache_hits_total") == 32.0


async def test_the_next_turn_of_a_chat_finds_the_one_before_with_its_answer() -> None:
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


async def test_tritons_metrics_are_on_a_port_of_their_own_too() -> None:
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


async def test_sglang_takes_requests_until_none_is_left() -> None:
    async with running(engine=EngineType.SGLANG) as engine:
        body = FOREVER | {"max_tokens": 50}
        async with engine.http.post("/v1/chat/completions", json=body) as response:
            drained = asyncio.create_task(engine.server.drain(60.0))
            await asyncio.sleep(0)
            status, _ = await engine.post("/v1/chat/completions", CHAT | {"max_tokens": 1})
            async with engine.http.get("/health") as health:
                assert (status, health.status) == (200, 503)
            await response.read()
        assert await drained


async def test_of_many_written_answers_some_repeat() -> None:
    wish = {"structured_outputs": {"regex": "[a-z]{30}"}, "n": 40, "max_tokens": 50}
    async with running(0.0001, slots=40) as engine:
        _, body = await engine.post("/v1/chat/completions", CHAT | wish)
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert (len(texts), len(set(texts))) == (40, 16)
