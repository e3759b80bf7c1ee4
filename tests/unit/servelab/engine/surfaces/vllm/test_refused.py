"""Which parameter vLLM's surface blames."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from modelserve.errors import InputError
from servelab.engine.core.intake import TooLarge
from servelab.engine.exchange import Request

PATH = "/v1/completions"


@pytest.mark.parametrize(
    ("error", "blamed"),
    [
        (TooLarge("it never fits"), "input_tokens"),
        (InputError("The body holds more than 1000000 values."), None),
    ],
    ids=["too large", "too many values"],
)
def test_only_a_request_that_never_fits_has_its_tokens_blamed(
    hosted: Callable[..., Any], error: Exception, blamed: str | None
) -> None:
    refused = hosted(EngineType.VLLM).surface.refused(Request("POST", PATH, PATH, {}), error)
    told = json.loads(refused.body)["error"]
    assert (refused.status, told["param"]) == (400, blamed)
