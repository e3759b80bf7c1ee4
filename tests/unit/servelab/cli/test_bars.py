"""How long commands tell how far they are."""

import pytest

from servelab.cli import bars


def test_a_quick_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with bars.Bar(lambda: 0.0) as bar:
        bar.count("simulating", 1, 3)
    assert capsys.readouterr().err == ""


def test_a_run_without_a_terminal_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str],
) -> None:
    times = iter([0.0, 1.0, 2.5, 3.0, 13.0])
    with bars.Bar(lambda: next(times)) as bar:
        for done in range(1, 5):
            bar.count("simulating", done, 4)
    assert capsys.readouterr().err == "simulating: 2 of 4\nsimulating: 4 of 4\n"
