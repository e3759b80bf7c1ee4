"""What a shell is offered."""

import click
import pytest

from servelab.cli import completing

CONTEXT = click.Context(click.Command("x"))
PARAMETER = click.Argument(["x"])


@pytest.mark.parametrize(
    ("complete", "typed", "offered"),
    [
        (completing.SCENARIO, "azure-code", ["azure-code-hour", "azure-code"]),
        (completing.POLICY, "kn", ["knative"]),
        (completing.POLICIES, "hpa,kn", ["hpa,knative"]),
        (completing.MODEL, "LLAMA-3.1-8", ["llama-3.1-8b-instruct"]),
        (completing.GPU, "h100-s", ["h100-sxm"]),
        (completing.STORAGE, "lus", ["lustre"]),
    ],
    ids=["scenario or file", "policy", "policies", "model", "gpu", "storage"],
)
def test_names_that_begin_so_are_offered(
    complete: completing.Complete, typed: str, offered: list[str]
) -> None:
    assert [item.value for item in complete(CONTEXT, PARAMETER, typed)] == offered
