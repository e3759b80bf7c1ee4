"""From a container to the engine's limits."""

import pytest

from servelab.engine import assembly

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
H100 = "NVIDIA-H100-80GB-HBM3"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["vllm", "serve", LLAMA], True),
        (["vllm", "serve", LLAMA, "--enable-prefix-caching"], True),
        (["vllm", "serve", LLAMA, "--no-enable-prefix-caching"], False),
        (["vllm", "serve", "--no-enable-prefix-caching", LLAMA], False),
        (["python3", "-m", "sglang.launch_server", "--model-path", LLAMA], False),
    ],
)
def test_vllm_has_its_prefix_cache_unless_it_is_switched_off(
    command: list[str], expected: bool
) -> None:
    container = {"name": "engine", "image": "registry.example/engine", "command": command}
    assert assembly.build(container, {}, H100, seed=0).config.prefix_caching is expected
