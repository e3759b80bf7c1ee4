"""What a kubelet says, word for word."""

import pytest

from servelab.node.rules import wording


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0s"),
        (0.041, "41ms"),
        (0.7969, "796ms"),
        (1.5, "1.5s"),
        (15.981, "15.981s"),
        (60.0, "1m0s"),
        (100.624, "1m40.624s"),
        (3600.0, "1h0m0s"),
    ],
)
def test_durations_are_written_as_go_does(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


def test_pulled_names_both_durations_and_the_size() -> None:
    assert wording.pulled("a:1", 63.204, 68.91, 9876543210) == (
        'Successfully pulled image "a:1" in 1m3.204s (1m8.91s including waiting). '
        "Image size: 9876543210 bytes."
    )


def test_lists_are_in_go_brackets() -> None:
    assert wording.bracketed(["a", "b"]) == "[a b]"
