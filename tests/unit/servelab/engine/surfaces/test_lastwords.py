"""What engines say when they end."""

import re

import pytest

from modelserve.catalog import gpus
from modelserve.engines import launch
from servelab.engine import assembly
from servelab.engine.surfaces import lastwords


@pytest.mark.parametrize(
    ("model", "gpu", "length"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "l4", 131_072),
        ("google/gemma-3-27b-it", "h100", 131_072),
    ],
)
def test_a_cache_that_is_too_small_is_smaller_than_what_is_needed(
    model: str, gpu: str, length: int
) -> None:
    found = gpus.find(gpu)
    words = [f"--model={model}", f"--max-model-len={length}", "--gpu-memory-utilization=0.85"]
    container = {"image": "vllm/vllm-openai:v0.33.0", "args": words}
    started = launch.parse(container, {}, found)
    assert started is not None
    with pytest.raises(assembly.KVShortage):
        assembly.from_launch(started, found, seed=0)
    said = lastwords.kv_shortage(started, found)
    match = re.search(r"\(([\d.]+) GiB KV cache is needed.* memory \(([\d.]+) GiB\)", said)
    assert match is not None
    assert float(match[1]) > float(match[2])
