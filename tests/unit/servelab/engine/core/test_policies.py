"""How the engines' schedulers differ, each difference as a sentence."""

import dataclasses
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.engine.core import sglang
from servelab.engine.core.batch import Batch
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.intake import TooLarge
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, Output
from servelab.engine.core.sglang import SglangScheduler
from servelab.engine.core.stepping import EngineCore

# A step takes a second. 10 blocks of 10 tokens, and no more than 50 tokens of prompts in a step.
VLLM = CoreConfig(8, 50, 100, kv_blocks=10, block_size=10)
SGLANG = dataclasses.replace(VLLM, policy=Policy.SGLANG)
NO_EVICT = dataclasses.replace(VLLM, policy=Policy.NO_EVICT, chunked_prefill=False)
MAX_UTILIZATION = dataclasses.replace(NO_EVICT, policy=Policy.MAX_UTILIZATION)


def core(config: CoreConfig) -> EngineCore:
    return EngineCore(config, SteadyLaw(1.0), random.Random(0), jumps=False)


def run(config: CoreConfig, *requests: CoreRequest, until_s: float = 1e6) -> list[Output]:
    """All steps of these requests, which come at 0."""
    engine = core(config)
    for request in requests:
        engine.submit(request, 0.0)
    return engine.settle(until_s)


def started_s(outputs: list[Output]) -> dict[str, float | None]:
    return {end.id: end.scheduled_s for output in outputs for end in output.finished}


def preempted(outputs: list[Output]) -> list[str]:
    return [name for output in outputs for name in output.preempted]


def joined(config: CoreConfig, prompt_tokens: int) -> list[tuple[tuple[str, ...], int]]:
    """Who got tokens, and prompt tokens, in the steps after a request joined a decoding one."""
    engine = core(dataclasses.replace(config, kv_blocks=20))
    engine.submit(CoreRequest("a", 10, 20), 0.0)
    engine.settle(2.0)
    engine.submit(CoreRequest("b", prompt_tokens, 5), 2.0)
    return [(output.ids, output.prefill_tokens) for output in engine.settle(5.0)]


def test_vllm_computes_prompts_and_decodes_in_the_same_step() -> None:
    assert joined(VLLM, 20)[0] == (("a", "b"), 20)


def test_sglang_decodes_nobody_while_it_computes_prompts() -> None:
    assert joined(SGLANG, 20)[:2] == [(("b",), 20), (("a", "b"), 0)]


def test_sglang_lets_decoding_wait_for_all_chunks_of_a_prompt() -> None:
    assert joined(SGLANG, 60)[:3] == [((), 50), (("b",), 10), (("a", "b"), 0)]


def test_sglang_with_mixed_chunks_computes_prompts_and_decodes_in_the_same_step() -> None:
    assert joined(dataclasses.replace(SGLANG, mixed_chunk=True), 20)[0] == (("a", "b"), 20)


def test_in_a_mixed_step_of_sglang_decoding_takes_of_the_budget_for_prompts() -> None:
    # Of 50 tokens 49 are left, which are four whole pages.
    assert joined(dataclasses.replace(SGLANG, mixed_chunk=True), 60)[0] == (("a",), 40)


def test_sglang_starts_a_request_only_beside_a_share_of_what_others_may_still_get() -> None:
    pair = CoreRequest("a", 20, 60), CoreRequest("b", 20, 40)
    assert started_s(run(VLLM, *pair))["b"] == 0.0
    assert started_s(run(SGLANG, *pair))["b"] == 60.0


def test_sglang_reckons_answers_that_cannot_end_early_in_full() -> None:
    engine = core(dataclasses.replace(SGLANG, prefix_caching=True))
    let_share_fall(engine)
    engine.submit(CoreRequest("a", 10, 50, fixed_length=True), 0.0)
    engine.submit(CoreRequest("b", 10, 20), 1.5)
    assert started_s(engine.settle(1e6))["b"] == 50.0


@pytest.mark.parametrize(("more", "start_s"), [(20, 0.0), (30, 40.0)])
def test_without_a_cache_sglang_reckons_when_those_of_fixed_length_end(
    more: int, start_s: float
) -> None:
    # Of 100 tokens 50 are left beside both prompts and their pages: for two answers of 24 or less.
    first = CoreRequest("a", 20, 40, fixed_length=True)
    outputs = run(SGLANG, first, CoreRequest("b", 10, more, fixed_length=True))
    assert started_s(outputs)["b"] == start_s


def test_once_sglang_has_refused_one_it_starts_nobody_until_somebody_leaves() -> None:
    engine = core(dataclasses.replace(SGLANG, kv_blocks=20))
    for name, size in (("a", (10, 80)), ("b", (10, 50)), ("large", (30, 60))):
        engine.submit(CoreRequest(name, *size), 0.0)
    engine.settle(3.0)
    engine.cancel("large", 3.0)
    engine.submit(CoreRequest("small", 5, 5), 3.0)
    assert started_s(engine.settle(1e6))["small"] == 50.0


def test_sglangs_share_falls_with_each_decoding_step_down_to_a_least() -> None:
    batch = Batch(SGLANG)
    scheduler = SglangScheduler(SGLANG, batch)
    shares = []
    for beats in (0, 300, 600, 900):
        batch.decoding.beats = beats
        shares.append(scheduler.share)
    assert shares == pytest.approx([0.7, 0.399, 0.098, 0.098])


def let_share_fall(engine: EngineCore) -> None:
    """As if it had decoded long, so that SGLang's scheduler starts more than can end."""
    engine._batch.decoding.beats = sglang.SHARE_STEPS
    engine._batch.decoding.last_beat_s = 1.0


def short_of_blocks(policy: Policy) -> list[Output]:
    """Two run that will need more blocks than there are, and a third waits for a slot."""
    engine = core(dataclasses.replace(VLLM, policy=policy, max_sequences=2))
    let_share_fall(engine)
    engine.submit(CoreRequest("a", 10, 70), 0.0)
    outputs = engine.settle(5.0)
    engine.submit(CoreRequest("b", 20, 40), 5.0)
    engine.submit(CoreRequest("c", 5, 5), 5.0)
    return outputs + engine.settle(1e6)


def next_after_preemption(outputs: list[Output]) -> list[str]:
    """Who gets tokens from then on, in order of the first of them."""
    at = next(at for at, output in enumerate(outputs) if output.preempted)
    return list(dict.fromkeys(name for output in outputs[at:] for name in output.ids))


def test_vllm_takes_the_blocks_of_the_last_that_started_and_lets_it_go_first_again() -> None:
    outputs = short_of_blocks(Policy.VLLM)
    assert (preempted(outputs), next_after_preemption(outputs)) == (["b"], ["a", "b", "c"])


def test_sglang_retracts_the_one_with_the_fewest_tokens_and_lets_it_queue_up_again() -> None:
    outputs = short_of_blocks(Policy.SGLANG)
    assert (preempted(outputs), next_after_preemption(outputs)) == (["b"], ["a", "c", "b"])


def test_of_equals_sglang_retracts_the_longest_prompt() -> None:
    engine = core(dataclasses.replace(SGLANG, kv_blocks=25, max_model_tokens=250))
    let_share_fall(engine)
    engine.submit(CoreRequest("old", 10, 230), 0.0)
    engine.settle(1.0)
    for name, prompt in (("long", 60), ("short", 5)):
        engine.submit(CoreRequest(name, prompt, 60), 1.0)
    assert preempted(engine.settle(1e6)) == ["long"]


@pytest.mark.parametrize("policy", [Policy.VLLM, Policy.SGLANG])
def test_retracted_or_preempted_no_token_counts_twice(policy: Policy) -> None:
    outputs = short_of_blocks(policy)
    ends = {end.id: end for output in outputs for end in output.finished}
    got = [name for output in outputs for name in output.ids]
    assert {name: got.count(name) for name in "abc"} == {"a": 70, "b": 40, "c": 5}
    assert {name: end.output_tokens for name, end in ends.items()} == {"a": 70, "b": 40, "c": 5}
    assert sum(end.preemptions for end in ends.values()) == len(preempted(outputs)) > 0


def test_tensorrt_llm_starts_only_what_can_run_to_its_end() -> None:
    pair = CoreRequest("a", 20, 60), CoreRequest("b", 20, 20)
    assert started_s(run(VLLM, *pair))["b"] == 0.0
    assert started_s(run(NO_EVICT, *pair))["b"] == 60.0


def test_tensorrt_llm_reckons_with_all_tokens_a_client_allows() -> None:
    modest, greedy = (CoreRequest("a", 20, 10, allowed_tokens=most) for most in (0, 70))
    waiting = CoreRequest("b", 20, 20)
    assert started_s(run(NO_EVICT, modest, waiting))["b"] == 0.0
    assert started_s(run(NO_EVICT, greedy, waiting))["b"] == 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Same:
    """All texts begin alike."""

    def ids(self, first: int, count: int) -> list[int]:
        return [0] * count


REQUESTS = st.builds(
    CoreRequest,
    id=st.just(""),
    prompt_tokens=st.integers(1, 50),
    max_tokens=st.integers(1, 50),
    tokens=st.sampled_from([None, Same()]),
    allowed_tokens=st.integers(0, 100),
)


@settings(max_examples=100, deadline=None)
@given(requests=st.lists(REQUESTS, max_size=12), caching=st.booleans())
def test_tensorrt_llm_never_stops_what_it_started(
    requests: list[CoreRequest], caching: bool
) -> None:
    config = dataclasses.replace(NO_EVICT, prefix_caching=caching)
    named = [request._replace(id=str(at)) for at, request in enumerate(requests)]
    outputs = run(config, *named)
    assert preempted(outputs) == []
    assert len(started_s(outputs)) == len(requests)


def test_for_most_utilization_tensorrt_llm_starts_at_once_and_stops_the_last() -> None:
    outputs = run(MAX_UTILIZATION, CoreRequest("a", 20, 60), CoreRequest("b", 20, 40))
    assert preempted(outputs) == ["b"]


def test_for_most_utilization_the_last_is_stopped_when_the_pool_of_the_windows_is_full() -> None:
    # 20 tokens each need two blocks of the window's pool, and three of five when they grow.
    config = dataclasses.replace(MAX_UTILIZATION, kv_blocks=100, second_pool=(20, 50))
    outputs = run(config, CoreRequest("a", 15, 30), CoreRequest("b", 15, 30))
    assert preempted(outputs) == ["b"]
    assert next(number for number, each in enumerate(outputs) if each.preempted) == 6


@settings(max_examples=100, deadline=None)
@given(requests=st.lists(REQUESTS, max_size=8), pool=st.integers(10, 120))
def test_for_most_utilization_jumps_are_as_steps_with_a_pool_of_windows(
    requests: list[CoreRequest], pool: int
) -> None:
    config = dataclasses.replace(MAX_UTILIZATION, second_pool=(20, pool))
    told = []
    for jumps in (False, True):
        engine = EngineCore(config, SteadyLaw(1.0), random.Random(0), jumps=jumps)
        for at, request in enumerate(requests):
            engine.submit(request._replace(id=str(at)), float(at % 3))
        ends = [end for output in engine.settle(1e5) for end in output.finished]
        told.append([(end.id, end.at_s, end.preemptions) for end in ends])
    assert told[0] == told[1]
    assert len(told[0]) == len(requests)


def test_tensorrt_llm_divides_no_prompt_unless_told_to() -> None:
    pair = CoreRequest("a", 30, 2), CoreRequest("b", 30, 2)
    divided = dataclasses.replace(NO_EVICT, chunked_prefill=True)
    assert [output.prefill_tokens for output in run(NO_EVICT, *pair)][:2] == [30, 30]
    assert [output.prefill_tokens for output in run(divided, *pair)][:2] == [50, 10]


def test_a_prompt_longer_than_a_step_is_refused_where_prompts_are_not_divided() -> None:
    with pytest.raises(TooLarge, match="computes 50"):
        run(NO_EVICT, CoreRequest("a", 51, 2))


@pytest.mark.parametrize("policy", [Policy.SGLANG, Policy.NO_EVICT, Policy.MAX_UTILIZATION])
def test_layers_with_windows_have_a_pool_that_may_be_too_full_when_the_other_is_not(
    policy: Policy,
) -> None:
    config = CoreConfig(8, 100, 100, kv_blocks=100, block_size=10, policy=policy)
    pair = CoreRequest("a", 30, 5), CoreRequest("b", 30, 5)
    for tokens, expected_s in ((1000, 0.0), (30, 5.0)):
        narrow = dataclasses.replace(config, second_pool=(20, tokens))
        assert started_s(run(narrow, *pair))["b"] == expected_s


def test_one_alone_starts_however_small_the_pool_of_the_windows_is() -> None:
    config = dataclasses.replace(SGLANG, second_pool=(20, 10))
    assert started_s(run(config, CoreRequest("a", 30, 5))) == {"a": 0.0}


def test_vllm_keeps_blocks_free_when_one_starts_beside_others() -> None:
    pair = CoreRequest("a", 40, 5), CoreRequest("b", 30, 5)
    for spare, expected_s in ((3, 0.0), (4, 5.0)):
        config = dataclasses.replace(VLLM, spare_blocks=spare)
        assert started_s(run(config, *pair))["b"] == expected_s


def test_vllm_starts_a_prompt_with_blocks_for_its_first_part_if_it_is_told_so() -> None:
    pair = CoreRequest("a", 30, 5), CoreRequest("b", 80, 5)
    for whole, expected_s in ((False, 0.0), (True, 5.0)):
        config = dataclasses.replace(VLLM, reserve_prompts=whole)
        assert started_s(run(config, *pair))["b"] == expected_s


def test_a_long_prompt_gets_at_least_its_fair_share_of_a_step_if_vllm_is_told_so() -> None:
    config = dataclasses.replace(VLLM, long_prefill_tokens=10)
    for fair, expected in ((False, 20), (True, 50)):
        found = dataclasses.replace(config, fair_prefills=fair)
        outputs = run(found, CoreRequest("a", 40, 1), CoreRequest("b", 40, 1), until_s=1.0)
        assert outputs[0].prefill_tokens == expected
