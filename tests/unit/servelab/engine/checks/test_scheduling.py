"""The core decides as vLLM's own scheduler did, in recordings of it."""

from pathlib import Path

import pytest

from servelab.engine.checks import scheduling as replay

RECORDINGS = Path(__file__).parent / "recordings"
# Beside the first: random loads given to vLLM 0.33.0's Scheduler and AsyncScheduler (Apache-2.0)
# by a script of ours that runs no model.
NAMES = (
    "vllm-0.33.0-scheduler.json",
    "vllm-0.33.0-scheduler-windows-async.json",
    "vllm-0.33.0-scheduler-priority.json",
    "vllm-0.33.0-scheduler-told.json",
    "vllm-0.33.0-scheduler-cadence.json",
)
CASES = {
    case.name: case
    for name in NAMES
    for case in replay.RECORDING.validate_json((RECORDINGS / name).read_bytes())
}


def case(**changes: object) -> replay.Case:
    """Two requests with the same prompt of 40 tokens, the second one three steps later."""
    limits = {
        "max_num_seqs": 4,
        "max_num_batched_tokens": 64,
        "max_model_len": 256,
        "num_gpu_blocks": 41,
        "prefix_caching": True,
    }
    requests = [
        {"id": name, "step": step, "prompt": [[7, 40]], "max_tokens": 2}
        for name, step in (("a", 0), ("b", 3))
    ]
    steps = [{"step": number} for number in range(6)]
    return replay.Case.model_validate(
        {"name": "x", "config": limits | changes, "requests": requests, "steps": steps}
    )


@pytest.mark.parametrize("name", CASES)
def test_every_step_is_as_vllm_decided(name: str) -> None:
    verdict = replay.compare([CASES[name]])
    assert (verdict.equal, verdict.first_differences) == (verdict.steps, [])


def test_a_step_that_differs_is_told_with_what_differs() -> None:
    changed = CASES["budget-split"].model_copy(deep=True)
    changed.steps[3].running += 1
    verdict = replay.compare([changed])
    assert verdict.equal == verdict.steps - 1
    (difference,) = verdict.first_differences
    assert (difference.case, difference.step) == ("budget-split", 3)
    assert list(difference.real) == ["running"]


def test_full_blocks_of_an_earlier_prompt_are_not_computed_again() -> None:
    steps = replay.replay(case())
    assert (steps[3].scheduled, steps[3].new_cached) == ({"b": 8}, {"b": 32})


def test_a_prompt_of_full_blocks_only_has_its_last_block_computed_again() -> None:
    exact = case()
    for request in exact.requests:
        request.prompt = [(7, 32)]
    assert replay.replay(exact)[3].scheduled == {"b": 16}


def test_nothing_is_found_with_the_cache_off() -> None:
    assert replay.replay(case(prefix_caching=False))[3].scheduled == {"b": 40}


def test_a_long_prompt_is_held_back_only_while_there_are_others() -> None:
    alone = case(long_prefill_token_threshold=8)
    assert replay.replay(alone)[0].scheduled == {"a": 40}
    together = case(long_prefill_token_threshold=8)
    together.requests[1].step = 0
    assert replay.replay(together)[0].scheduled == {"a": 8, "b": 8}


def test_a_request_that_can_never_get_its_blocks_waits_and_is_idle() -> None:
    tiny = case(num_gpu_blocks=3)
    assert [step.waiting for step in replay.replay(tiny)] == [1, 1, 1, 2, 2, 2]


def test_a_recording_may_say_what_vllm_was_told_besides() -> None:
    limits = case(
        max_num_active_seqs=2,
        enable_chunked_prefill=False,
        long_prefill_token_threshold=9,
        long_prefill_token_threshold_adaptive=True,
        scheduler_reserve_full_isl=False,
        watermark=0.1,
    ).config.core_config()
    assert (limits.max_sequences, limits.chunked_prefill, limits.fair_prefills) == (2, False, True)
    assert (limits.reserve_prompts, limits.spare_blocks) == (False, 4)
