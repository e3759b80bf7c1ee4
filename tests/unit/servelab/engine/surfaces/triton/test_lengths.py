"""A prompt that leaves no room for an answer is refused in the backend's words."""

from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType

LONG = "hello " * 200_000
TOLD = "exceeds maximum input length"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"model": "llama-8b", "prompt": LONG}),
        (
            "/v1/chat/completions",
            {"model": "llama-8b", "messages": [{"role": "user", "content": LONG}]},
        ),
    ],
)
def test_the_front_end_names_both_lengths(
    hosted: Callable[..., Any], path: str, body: dict[str, Any]
) -> None:
    answer = hosted(EngineType.TRITON).ask("POST", path, body)
    assert (answer.status, TOLD in answer.document["detail"]) == (400, True)
