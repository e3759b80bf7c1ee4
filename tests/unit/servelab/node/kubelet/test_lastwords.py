"""Termination messages of engines: with FallbackToLogsOnError the end of their log."""

from typing import Any

import pytest

FALLS_BACK = {"terminationMessagePolicy": "FallbackToLogsOnError"}


def ended(pod: Any) -> dict[str, Any]:
    """How the engine's run before this one ended, as its pod tells it."""
    found: dict[str, Any] = pod.container()["lastState"]["terminated"]
    return found


def test_an_engine_that_fails_leaves_the_end_of_its_log(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    pod = player(make_pod(**FALLS_BACK), make_engine()).run(25)
    for number in range(100):
        pod.life.wrote("engine", f"line {number}", pod.now)
    pod.life.exited("engine", 2, pod.now)
    told = ended(pod.run(40))
    assert told["exitCode"] == 2
    assert told["message"].splitlines() == [f"line {number}" for number in range(20, 100)]


def test_of_a_long_log_2048_bytes_are_left(make_pod: Any, make_engine: Any, player: Any) -> None:
    pod = player(make_pod(**FALLS_BACK), make_engine()).run(25)
    pod.life.wrote("engine", "a" * 3000, pod.now)
    pod.life.exited("engine", 2, pod.now)
    assert ended(pod.run(40))["message"] == "a" * 2047 + "\n"


def test_what_it_said_while_it_loaded_is_part_of_it(
    make_pod: Any, make_engine: Any, player: Any
) -> None:
    pod = player(make_pod(**FALLS_BACK), make_engine()).run(25)
    pod.life.exited("engine", 1, pod.now)
    assert ended(pod.run(40))["message"] == "half way\n"


@pytest.mark.parametrize(("policy", "code"), [({}, 2), (FALLS_BACK, 0)], ids=["file", "success"])
def test_otherwise_an_engine_leaves_no_message(
    make_pod: Any, make_engine: Any, player: Any, policy: dict[str, str], code: int
) -> None:
    pod = player(make_pod(**policy), make_engine()).run(25)
    pod.life.wrote("engine", "words", pod.now)
    pod.life.exited("engine", code, pod.now)
    assert "message" not in ended(pod.run(40))


def test_so_does_one_that_a_fault_ends(make_pod: Any, make_engine: Any, player: Any) -> None:
    pod = player(make_pod(**FALLS_BACK), make_engine()).run(25)
    dies = pod.life.state.engines["engine"].die
    dies(pod.life.state.out, pod.now, 1, ["no GPU"])
    assert ended(pod.run(40))["message"] == "half way\nno GPU\n"


def test_one_that_is_killed_before_its_own_end_leaves_none(play: Any) -> None:
    words = {"exitAfterSeconds": 60, "terminationMessage": "why"}
    pod = play(words, container={"command": ["sh"]}).run(2).delete().run(9)
    assert "message" not in pod.container()["state"]["terminated"]
