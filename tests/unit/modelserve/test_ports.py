"""What all clusters have in common."""

import pytest

from modelserve import ports


@pytest.mark.parametrize(("text", "version"), [("9", 9), ("10", 10), ("", 0), ("x1", 0)])
def test_versions_compare_as_numbers(text: str, version: int) -> None:
    assert ports.resource_version({"metadata": {"resourceVersion": text}}) == version
