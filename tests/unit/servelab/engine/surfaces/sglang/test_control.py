"""SGLang paused, told to abort, and told to forget."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.core.sequences import FinishReason
from servelab.engine.replying import Choice
from servelab.engine.text.answers import Words
from servelab.engine.text.lengths import Ending

Hosted = Callable[..., Any]
ENGINE = EngineType.SGLANG
PATHS: dict[str, dict[str, Any]] = {
    "/generate": {"text": "hi", "rid": "mine-1"},
    "/v1/completions": {"prompt": "hi", "rid": "mine-1"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}], "rid": "mine-1"},
    "/v1/responses": {"model": "llama-8b", "input": "hi", "request_id": "mine-1"},
}


def generating(host: Any, path: str, tokens: int = 0, **body: Any) -> Any:
    """The exchange of a request that has got so many tokens."""
    exchange = host.ask("POST", path, PATHS[path] | body)
    reply = host.replies[-1]
    ending = Ending(9, FinishReason.LENGTH)
    reply.add([Choice(reply, Words(1), reply.call.prompts[0], ending)])
    reply.open(exchange)
    reply.choices[0].tokens(tokens)
    reply.flush()
    return exchange


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("rid", ["mine", "", "other"])
def test_only_a_name_that_is_known_is_aborted(hosted: Hosted, path: str, rid: str) -> None:
    host = hosted(ENGINE)
    exchange = generating(host, path)
    assert host.ask("POST", "/abort_request", {"rid": rid}).status == 200
    assert not exchange.ended
    host.ask("POST", "/abort_request", {"rid": "mine-1"})
    assert exchange.ended


def test_a_name_that_is_known_takes_along_those_that_begin_with_it(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    exchanges = [generating(host, "/generate", rid=rid) for rid in ("a", "ab", "b")]
    host.ask("POST", "/abort_request", {"rid": "a"})
    assert [exchange.ended for exchange in exchanges] == [True, True, False]
    host.ask("POST", "/abort_request", {"abort_all": True})
    assert exchanges[2].ended


def test_little_is_told_of_a_request_that_was_aborted_before_it_ran(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    exchanges = [generating(host, path) for path in PATHS]
    host.ask("POST", "/abort_request", {"abort_all": True})
    native, text, chat, response = (exchange.document for exchange in exchanges)
    reason = {"type": "abort", "message": "Abort in waiting queue"}
    assert (native["meta_info"]["finish_reason"], "prompt_tokens" in native["meta_info"]) == (
        *(reason, False),
    )
    assert [each["choices"][0]["finish_reason"] for each in (text, chat)] == ["abort"] * 2
    assert [each["usage"]["prompt_tokens"] for each in (text, chat)] == [0, 0]
    assert (response["status"], response["output"]) == ("failed", [])
    assert response["error"]["message"] == reason["message"]


def test_an_aborted_answer_has_what_was_made_of_it(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    exchanges = [generating(host, path, 2) for path in PATHS]
    host.ask("POST", "/abort_request", {"abort_all": True})
    native, text, chat, response = (exchange.document for exchange in exchanges)
    assert native["meta_info"]["finish_reason"]["message"] == "Aborted"
    made = [native["text"], text["choices"][0]["text"], chat["choices"][0]["message"]["content"]]
    assert {*made, response["output"][0]["content"][0]["text"]} == {Words(1).text(2)}


@pytest.mark.parametrize(
    ("mode", "held"), [("abort", []), ("in_place", ["held"]), ("retract", ["requeued"])]
)
def test_a_pause_stops_what_is_there_as_it_was_told_to(
    hosted: Hosted, mode: str, held: list[str]
) -> None:
    host = hosted(ENGINE)
    exchange = generating(host, "/generate")
    host.ask("POST", "/pause_generation", {"mode": mode})
    assert (host.held, exchange.ended) == (held, mode == "abort")


def test_requests_wait_for_the_end_of_a_pause(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    host.ask("POST", "/pause_generation", {})
    for path, body in PATHS.items():
        assert not host.ask("POST", path, body).ended
    assert host.replies == []
    host.ask("POST", "/continue_generation", {})
    assert len(host.replies) == len(PATHS)


def test_a_client_that_goes_during_a_pause_is_not_served_after_it(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    host.ask("POST", "/pause_generation", {})
    exchange = host.ask("POST", "/generate", PATHS["/generate"])
    for callback in exchange.callbacks:
        callback()
    host.ask("POST", "/continue_generation", {})
    assert host.replies == []


def test_a_queue_that_is_full_after_a_pause_is_told(hosted: Hosted) -> None:
    host = hosted(ENGINE, full=True)
    host.ask("POST", "/pause_generation", {})
    streams = [host.ask("POST", path, body | {"stream": True}) for path, body in PATHS.items()]
    whole = host.ask("POST", "/generate", PATHS["/generate"])
    host.ask("POST", "/continue_generation", {})
    assert all(exchange.ended for exchange in (*streams, whole))


def test_a_paused_server_is_not_ready_and_sick_once_its_health_is_checked(hosted: Hosted) -> None:
    def statuses() -> list[int]:
        return [host.ask("GET", path).status for path in ("/ready", "/ping", "/health", "/ping")]

    host = hosted(ENGINE)
    host.ask("POST", "/pause_generation", {})
    assert statuses() == [503, 200, 503, 503]
    host.ask("POST", "/continue_generation", {})
    assert statuses() == [503, 503, 200, 200]


def test_a_cache_is_not_flushed_while_something_runs(hosted: Hosted) -> None:
    host = hosted(ENGINE)
    host.forgets = False
    assert host.ask("POST", "/flush_cache").status == 400
    host.forgets = True
    assert host.ask("GET", "/flush_cache").body.startswith(b"Cache flushed.")


@pytest.mark.parametrize(("size", "taken"), [(8, True), (9, False), (0, False)])
def test_a_micro_batch_is_no_larger_than_the_batch(hosted: Hosted, size: int, taken: bool) -> None:
    body = {"server_args": {"pp_max_micro_batch_size": size}}
    assert hosted(ENGINE).ask("POST", "/set_internal_state", body).document == [taken]


def test_what_runs_no_longer_makes_no_throughput(hosted: Hosted) -> None:
    host = hosted(ENGINE, "enable-metrics")
    host.ask("POST", "/pause_generation", {"mode": "retract"})
    assert host.exporter.throughput == 0.0
