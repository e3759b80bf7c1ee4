"""SGLang's surface: readiness, a full queue, what it is set to tell."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.checks import surface
from servelab.engine.surfaces.surface import State

GOLDEN = Path(__file__).parents[5] / "golden" / "surface" / "sglang-0.5.23-queue-full-http.json"
Hosted = Callable[..., Any]
HEALTH = ("/health", "/health_generate", "/ready", "/ping")


@pytest.mark.parametrize("row", json.loads(GOLDEN.read_text()), ids=lambda row: row["name"])
def test_a_full_queue_is_told_as_the_real_server_tells_it(
    hosted: Hosted, row: dict[str, Any]
) -> None:
    answer = hosted(EngineType.SGLANG, full=True).ask(row["method"], row["path"], row["body"])
    if "events" in row["response"]:
        ours: dict[str, Any] = {"events": [{"data": each} for each in answer.events]}
    else:
        ours = {"json": answer.document}
    told = {"status": answer.status, "response_headers": row["response_headers"], "response": ours}
    assert surface.compare(row, told) == []


@pytest.mark.parametrize("path", HEALTH)
def test_it_is_unready_while_it_loads_and_while_it_drains(hosted: Hosted, path: str) -> None:
    host = hosted(EngineType.SGLANG)
    host.state = State.LOADING
    assert host.ask("GET", path, loading=True).status == 503
    host.state = State.DRAINING
    assert host.ask("GET", path).status == 503
    host.state = State.READY
    assert host.ask("GET", path).status == 200


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "hi", "n": 10**9}),
        ("/generate", {"text": ["hi", "ho"], "sampling_params": {"n": 10_000}}),
    ],
)
def test_more_answers_than_can_be_made_are_refused(
    hosted: Hosted, path: str, body: dict[str, Any]
) -> None:
    assert hosted(EngineType.SGLANG).ask("POST", path, body).status == 400


def test_all_but_its_health_is_served_while_it_warms_up(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    host.state = State.LOADING
    told = host.ask("GET", "/v1/models", loading=True)
    assert (told.status, told.document["data"][0]["id"]) == (200, "llama-8b")
    host.ask("POST", "/generate", {"text": "hi"}, loading=True)
    assert len(host.replies) == 1


def test_metrics_are_there_only_if_they_were_asked_for(hosted: Hosted) -> None:
    def paths(host: Any) -> set[str]:
        return {route.path for route in host.surface.routes()}

    assert "/metrics" not in paths(hosted(EngineType.SGLANG))
    assert "/metrics" in paths(hosted(EngineType.SGLANG, "enable-metrics"))


def test_answers_are_counted_by_route_and_status(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "enable-metrics")
    host.ask("GET", "/ready")
    host.ask("POST", "/generate", {})
    text = host.exporter.render()
    ready = 'sglang:http_responses_total{endpoint="/ready",method="GET",status_code="200"} 1.0'
    bad = 'sglang:http_responses_total{endpoint="/generate",method="POST",status_code="400"} 1.0'
    assert ready in text
    assert bad in text
    assert 'sglang:http_requests_active{endpoint="/generate",method="POST"} 0.0' in text


def test_a_request_is_taken_under_any_model_name(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    host.ask("POST", "/v1/completions", {"model": "another", "prompt": "hi"})
    assert [reply.asked.model for reply in host.replies] == ["another"]


def test_load_is_told_as_json_and_as_metrics(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    load = host.ask("GET", "/v1/loads").document["loads"][0]
    assert (load["num_running_reqs"], load["queues"]["waiting"]) == (0, 0)
    assert "queues" not in host.ask("GET", "/v1/loads?include=core").document["loads"][0]
    told = host.ask("GET", "/v1/loads?format=prometheus").body.decode()
    assert 'sglang_num_running_reqs{dp_rank="0"} 0' in told


def test_load_is_of_one_rank_and_of_known_sections(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG)
    assert host.ask("GET", "/v1/loads?dp_rank=1").document["loads"] == []
    assert host.ask("GET", "/v1/loads?dp_rank=one").status == 400
    assert host.ask("GET", "/v1/loads?include=core,weather").status == 500
    told = host.ask("GET", "/v1/loads?include=disagg").document["loads"][0]
    assert (told["disaggregation"]["mode"], "queues" in told) == ("null", False)


def test_all_arguments_are_told_and_how_long_the_start_took(hosted: Hosted) -> None:
    host = hosted(EngineType.SGLANG, "enable-metrics")
    host.start_up_s = 30.0
    told = host.ask("GET", "/server_info").document
    assert (told["tp_size"], told["enable_metrics"], told["enable_lora"]) == (1, True, False)
    assert told["startup_time"]["tokenizer_e2e"] == 30.0
    assert told["internal_states"][0]["effective_max_running_requests_per_dp"] == 8
    line = 'sglang:startup_time_seconds{engine_type="unified",model_name="llama-8b",phase='
    assert f'{line}"load_weight"}} 30.0' in host.ask("GET", "/metrics").body.decode()


@pytest.mark.parametrize(
    ("path", "body"),
    [("/v1/completions", {"prompt": "hi"}), ("/generate", {"text": "hi"})],
)
def test_a_priority_is_taken_unless_it_is_to_be_refused(
    hosted: Hosted, path: str, body: dict[str, Any]
) -> None:
    asked = body | {"priority": 3}
    strict = hosted(EngineType.SGLANG, "abort-on-priority-when-disabled")
    both = ("abort-on-priority-when-disabled", "enable-priority-scheduling")
    statuses = [
        host.ask("POST", path, asked).status
        for host in (hosted(EngineType.SGLANG), strict, hosted(EngineType.SGLANG, *both))
    ]
    assert statuses == [0, 503, 0]
    assert hosted(EngineType.SGLANG).ask("POST", path, body | {"priority": 2**63}).status == 400


def test_a_plain_fault_is_no_json(hosted: Hosted) -> None:
    answer = hosted(EngineType.SGLANG).ask("POST", "/v1/chat/completions", [1])
    assert (answer.status, answer.body) == (500, b"Internal Server Error")
