"""Parsers of calls and thoughts that vLLM does not know."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.engines import launch

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def parse(flags: str, image: str = "vllm/vllm-openai:v0.33.0") -> Any:
    return launch.parse({"image": image, "args": ["--model", LLAMA, *flags.split()]}, {})


@pytest.mark.parametrize(
    "flags",
    [
        "--enable-auto-tool-choice --tool-call-parser zzz",
        "--enable-auto-tool-choice",
        "--reasoning-parser zzz",
    ],
)
def test_an_engine_that_would_end_is_refused(flags: str) -> None:
    with pytest.raises(errors.StartRefused):
        parse(flags)


@pytest.mark.parametrize(
    "flags",
    [
        "--enable-auto-tool-choice --tool-call-parser hermes --reasoning-parser qwen3",
        "--tool-call-parser zzz",
        "--reasoning-parser zzz --reasoning-parser-plugin /p.py",
        "--enable-auto-tool-choice --tool-call-parser zzz --tool-parser-plugin /p.py",
    ],
)
def test_known_ones_and_those_that_a_plugin_may_bring_are_taken(flags: str) -> None:
    assert parse(flags) is not None


def test_other_versions_may_have_others() -> None:
    assert parse("--reasoning-parser zzz", "vllm/vllm-openai:v0.9.0") is not None
