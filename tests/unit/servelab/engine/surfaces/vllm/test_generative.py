"""Further endpoints: batches, scores, scaling, metrics under other names, pages."""

from typing import Any

import pytest

from modelserve.api.spec import EngineType

ASK = {"query": "is it", "items": ["a", "b"], "label_token_ids": [5, 6]}


@pytest.fixture
def engine(hosted: Any) -> Any:
    return hosted(EngineType.VLLM)


def test_scores_of_equal_prompts_are_equal_and_between_0_and_1(engine: Any) -> None:
    for _ in range(2):
        engine.ask("POST", "/generative_scoring", ASK)
    told = [reply.response().body for reply in engine.replies]
    assert told[0] == told[1]
    for score in (each for reply in engine.replies for each in reply.scores()):
        assert 0 < score < 1


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"items": []}, 400),
        ({"label_token_ids": []}, 400),
        ({"label_token_ids": [10**7]}, 400),
        ({"label_token_ids": list(range(30))}, 400),
        ({"model": "gpt"}, 404),
        ({"query": "", "items": [""]}, 400),
    ],
)
def test_a_bad_question_has_no_score(engine: Any, change: Any, status: int) -> None:
    assert engine.ask("POST", "/generative_scoring", ASK | change).status == status


def test_a_batch_is_one_prompt_a_conversation(engine: Any) -> None:
    said = [[{"role": "user", "content": "a"}], [{"role": "user", "content": "b c"}]]
    engine.ask("POST", "/v1/chat/completions/batch", {"messages": said, "max_tokens": 3})
    call = engine.replies[0].call
    assert (len(call.prompts), call.n, call.max_tokens) == (2, 1, 3)


@pytest.mark.parametrize("change", [{"n": 2}, {"messages": []}, {"messages": [[]]}, {"tools": 5}])
def test_a_batch_that_is_none_is_refused(engine: Any, change: Any) -> None:
    body = {"messages": [[{"role": "user", "content": "a"}]]} | change
    answer = engine.ask("POST", "/v1/chat/completions/batch", body)
    assert answer.status == 400


@pytest.mark.parametrize(
    ("wanted", "status"), [(1, 200), (2, 500), (0, 400), ("x", 400), (None, 400)]
)
def test_only_as_many_engines_as_there_are_may_be_asked_for(
    engine: Any, wanted: Any, status: int
) -> None:
    body = {"new_data_parallel_size": wanted}
    assert engine.ask("POST", "/scale_elastic_ep", body).status == status


@pytest.mark.parametrize(("method", "path"), [("POST", "/metrics"), ("GET", "/metrics/x")])
def test_metrics_answer_under_any_name_and_method(engine: Any, method: str, path: str) -> None:
    answer = engine.ask(method, path)
    assert answer.status == 200
    assert b"vllm:num_requests_running" in answer.body


def test_the_pages_are_there(engine: Any) -> None:
    assert b"swagger-ui" in engine.ask("GET", "/docs").body
