"""What explain says of set-ups whose answers are known."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve.api.spec import EngineType, Loader, Quantization
from modelserve.catalog import gpus, models
from modelserve.engines import kv
from modelserve.errors import InputError
from servelab.explain import answer
from servelab.explain.question import Question

H100 = gpus.find("h100")


def ask(model: str = "llama-8b", tensor_parallel: int = 1) -> answer.Explanation:
    return answer.answer(Question(models.find(model), H100, tensor_parallel))


def test_70b_at_16_bit_does_not_fit_one_h100() -> None:
    found = ask("llama-70b")
    assert not found.fit.fits
    assert (found.users, found.speeds, found.requests_per_s) == (0, (), 0.0)
    assert "does not fit" in answer.summary(found)


def test_alone_memory_bandwidth_limits_decode_and_compute_limits_prefill() -> None:
    found = ask()
    assert found.speeds[0].limit.hardware == "memory bandwidth"
    assert found.prefill_limit.hardware == "compute"


def test_the_last_batch_is_what_the_kv_cache_or_the_engine_holds() -> None:
    found = ask("llama-70b", 4)
    assert found.speeds[-1].batch == found.users
    assert found.users == found.fit.kv_tokens // 768


def test_windows_leave_room_for_more_users_with_long_requests() -> None:
    gemma = models.find("gemma-3-27b-it")
    asked = Question(gemma, H100, max_model_tokens=16_384, input_tokens=9000, output_tokens=216)
    room = kv.room_bytes(gemma, H100, 1)
    in_full, in_windows = (
        room // each for each in (9216 * gemma.kv_bytes(1), gemma.kv_bytes(9216))
    )
    # A window begins inside a block, and who starts must find room for all of its prompt.
    assert 3 * in_full < answer.answer(asked).users < in_windows


def test_more_users_give_more_tokens_and_wait_longer_for_each() -> None:
    speeds = ask().speeds
    for one, more in itertools.pairwise(speeds):
        assert more.output_tokens_per_s > one.output_tokens_per_s
        assert more.tpot_s > one.tpot_s


def test_the_document_is_json_with_stable_keys() -> None:
    document = json.loads(json.dumps(answer.to_json(ask())))
    assert {"fit", "kv", "speeds", "requests_per_s", "limits", "cold_start"} <= set(document)
    assert document["speeds"][0]["parts_s"].keys() == answer.WAITS_FOR.keys() - {"attention"}


def test_a_cold_start_names_what_limits_the_read() -> None:
    slow = Question(models.find("llama-8b"), H100, storage_class="ebs-gp3", loader=Loader.STREAMING)
    limits = answer.to_json(answer.answer(slow))["cold_start"]
    assert limits["weight_limit"] == "storage"


@pytest.mark.parametrize("engine", list(EngineType))
def test_every_engine_can_be_asked_about(engine: EngineType) -> None:
    model = models.find("llama-8b")
    found = answer.answer(Question(model, H100, 1, Quantization.FP8, engine))
    assert found.requests_per_s > 0
    assert found.cold_start.total_s > 0


@pytest.mark.parametrize(
    ("max_tokens", "input_tokens", "sentence"),
    [(200_000, 10, "has a context of 131072"), (512, 400, "is longer than the 512")],
)
def test_requests_that_cannot_be_are_refused(
    max_tokens: int, input_tokens: int, sentence: str
) -> None:
    model = models.find("llama-8b")
    with pytest.raises(InputError, match=sentence):
        Question(model, H100, max_model_tokens=max_tokens, input_tokens=input_tokens)


@given(st.integers(1, 5000))
def test_batches_double_up_to_the_most(most: int) -> None:
    sizes = answer.batches(most)
    assert sizes[0] == 1
    assert sizes[-1] == most
    assert sizes == sorted(set(sizes))
