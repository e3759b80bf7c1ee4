"""TGI's launcher: flags, their environment variables, and what follows from them."""

from typing import Any

import pytest

from modelserve.engines import launch
from modelserve.engines.launch import Launch

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def parsed(*args: str, **env: str) -> Launch:
    words = ["text-generation-launcher", f"--model-id={LLAMA}", *args]
    told: list[Any] = [{"name": name, "value": value} for name, value in env.items()]
    found = launch.parse({"image": "x", "command": words, "env": told}, {})
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("args", "running", "waiting"),
    [
        ((), 128, 0),
        (("--max-batch-size=32",), 32, 96),
        (("--max-concurrent-requests=8",), 8, 0),
        (("--max-batch-size=64", "--max-concurrent-requests=8"), 8, 0),
    ],
)
def test_the_router_lets_in_so_many_requests(
    args: tuple[str, ...], running: int, waiting: int
) -> None:
    found = parsed(*args)
    assert (found.max_sequences, found.queue_limit) == (running, waiting)


def test_what_only_the_router_has_is_an_option() -> None:
    found = parsed("--max-input-length", "1000", "--json-output", MAX_BEST_OF="4")
    assert dict(found.options) == {
        "max-input-tokens": "1000",
        "json-output": "",
        "max-best-of": "4",
    }


def test_flags_go_before_the_environment() -> None:
    assert parsed("--max-total-tokens=4096", MAX_TOTAL_TOKENS="2048").max_model_tokens == 4096
