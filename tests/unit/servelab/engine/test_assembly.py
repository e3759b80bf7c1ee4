"""From a container to the engine's limits."""

import pytest

from modelserve.api.spec import EngineType
from servelab.engine import assembly
from servelab.engine.core.config import CoreConfig, Policy

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
H100 = "NVIDIA-H100-80GB-HBM3"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["vllm", "serve", LLAMA], True),
        (["vllm", "serve", LLAMA, "--enable-prefix-caching"], True),
        (["vllm", "serve", LLAMA, "--no-enable-prefix-caching"], False),
        (["vllm", "serve", "--no-enable-prefix-caching", LLAMA], False),
        (["python3", "-m", "sglang.launch_server", "--model-path", LLAMA], True),
        (["trtllm-serve", LLAMA], True),
    ],
)
def test_engines_have_their_prefix_cache_unless_it_is_switched_off(
    command: list[str], expected: bool
) -> None:
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    assert assembly.build(container, {}, H100, seed=0).config.prefix_caching is expected


@pytest.mark.parametrize(("flags", "interval"), [([], 1), (["--prefill-schedule-interval=4"], 4)])
def test_how_often_vllm_computes_prompts_reaches_its_scheduler(
    flags: list[str], interval: int
) -> None:
    command = ["vllm", "serve", LLAMA, *flags]
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    assert assembly.build(container, {}, H100, seed=0).config.prefill_interval == interval


def test_what_vllm_is_told_of_tools_reaches_its_server() -> None:
    command = ["vllm", "serve", LLAMA, "--enable-auto-tool-choice", "--tool-call-parser", "hermes"]
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    options = dict(assembly.build(container, {}, H100, seed=0).options)
    told = {"enable-auto-tool-choice": "true", "tool-call-parser": "hermes"}
    assert options.items() >= told.items()


@pytest.mark.parametrize(
    ("command", "policy", "block_tokens", "divides"),
    [
        (["vllm", "serve", LLAMA], Policy.VLLM, 16, True),
        (["python3", "-m", "sglang.launch_server", "--model-path", LLAMA], Policy.SGLANG, 16, True),
        (["trtllm-serve", LLAMA], Policy.NO_EVICT, 32, False),
    ],
)
def test_each_engine_schedules_by_its_own_rules(
    command: list[str], policy: Policy, block_tokens: int, divides: bool
) -> None:
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    config = assembly.build(container, {}, H100, seed=0).config
    found = (config.policy, config.block_size, config.chunked_prefill)
    assert found == (policy, block_tokens, divides)


@pytest.mark.parametrize(
    ("command", "divides", "mixes"),
    [
        (["trtllm-serve", LLAMA, "--enable_chunked_prefill"], True, False),
        (["sglang", "serve", "--model-path", LLAMA, "--enable-mixed-chunk"], True, True),
        (["vllm", "serve", LLAMA, "--no-enable-chunked-prefill"], False, False),
        (["vllm", "serve", LLAMA, "--enable-chunked-prefill"], True, False),
    ],
)
def test_prompts_are_divided_and_mixed_as_an_engine_is_told(
    command: list[str], divides: bool, mixes: bool
) -> None:
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    config = assembly.build(container, {}, H100, seed=0).config
    assert (config.chunked_prefill, config.mixed_chunk) == (divides, mixes)


def test_a_step_of_vllm_holds_any_prompt_where_prompts_are_not_divided() -> None:
    command = ["vllm", "serve", LLAMA, "--no-enable-chunked-prefill", "--max-model-len=32k"]
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    assert assembly.build(container, {}, H100, seed=0).config.max_batched_tokens == 32_000


def test_vllm_takes_a_limit_on_the_share_of_long_prompts() -> None:
    command = ["vllm", "serve", LLAMA, "--long-prefill-token-threshold=512"]
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    assert assembly.build(container, {}, H100, seed=0).config.long_prefill_tokens == 512


def test_tensorrt_llm_packs_and_pauses_if_its_file_says_so() -> None:
    file = "scheduler_config: {capacity_scheduler_policy: MAX_UTILIZATION}"
    script = f"echo '{file}' > o.yaml && trtllm-serve {LLAMA} --config o.yaml"
    container = {"name": "engine", "image": "x", "command": ["sh", "-c", script]}
    assert assembly.build(container, {}, H100, seed=0).config.policy is Policy.MAX_UTILIZATION


def test_every_engine_has_rules() -> None:
    assert set(assembly.RULES) == set(EngineType)


def config_of(*command: str) -> CoreConfig:
    container = {"name": "engine", "image": "registry.example/engine", "command": [*command]}
    return assembly.build(container, {}, H100, seed=0).config


def test_vllm_is_told_how_it_admits() -> None:
    words = ("--max-num-active-seqs=7", "--no-scheduler-reserve-full-isl", "--watermark=0.1")
    shares = ("--long-prefill-token-threshold=100", "--long-prefill-token-threshold-adaptive")
    config = config_of("vllm", "serve", LLAMA, *words, *shares)
    assert (config.slots, config.reserve_prompts, config.fair_prefills) == (7, False, True)
    assert config.spare_blocks == config.kv_blocks // 10
    plain = config_of("vllm", "serve", LLAMA)
    assert (plain.reserve_prompts, plain.fair_prefills, plain.spare_blocks) == (True, False, 0)


@pytest.mark.parametrize(
    ("words", "gap"),
    [
        ((), None),
        (("--enable-priority-scheduling",), 10),
        (("--enable-priority-scheduling", "--priority-scheduling-preemption-threshold=3"), 3),
        (("--enable-priority-scheduling", "--disable-priority-preemption"), None),
    ],
)
def test_sglang_lets_one_make_way_for_another_if_it_goes_by_priority(
    words: tuple[str, ...], gap: int | None
) -> None:
    config = config_of("python3", "-m", "sglang.launch_server", "--model-path", LLAMA, *words)
    assert config.priority_gap == gap
