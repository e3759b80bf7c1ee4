"""The story in lines, for pipes, and in a panel, for terminals."""

import dataclasses
import io

from rich import console

from servelab.demo import view
from servelab.demo.scene import Scene

SCENE = Scene("silence", 65.0, desired=2, ready=1, starting=1, held=3, sent=9, done=4)


def lines(*scenes: Scene) -> list[str]:
    stream = io.StringIO()
    told = view.Lines(stream)
    for scene in scenes:
        told.show(scene)
    told.close()
    return stream.getvalue().splitlines()


def test_a_line_tells_replicas_and_requests() -> None:
    assert lines(SCENE) == [
        "  1:05  silence",
        "  1:05  replicas: 2 wanted, 1 ready, 1 starting; requests: 5 open (3 held), 4 answered",
    ]


def test_the_same_again_is_not_repeated() -> None:
    assert len(lines(SCENE, SCENE, SCENE)) == 2


def test_a_new_decision_is_told_at_once() -> None:
    decided = dataclasses.replace(SCENE, decision="backlog, so 1 → 2")
    assert lines(SCENE, decided)[-1] == "  1:05  decided: backlog, so 1 → 2"


def test_failures_and_leavers_are_told() -> None:
    text = lines(dataclasses.replace(SCENE, errors=2, leaving=1, waiting_for="image pull"))[-1]
    assert "1 leaving" in text
    assert "2 failed" in text
    assert text.endswith("waits for image pull")


def test_a_pipe_gets_lines() -> None:
    assert isinstance(view.for_stream(io.StringIO()), view.Lines)


def test_the_panel_shows_brackets_as_they_are() -> None:
    stream = io.StringIO()
    shown = view.draw(dataclasses.replace(SCENE, decision="window [60 s]", act="one [1] act"))
    console.Console(file=stream, width=90).print(shown)
    assert "window [60 s]" in stream.getvalue()
    assert "one [1] act" in stream.getvalue()


def test_a_panel_can_be_closed_twice_and_unopened() -> None:
    stream = io.StringIO()
    panel = view.Panel(stream)
    panel.close()
    panel.show(SCENE)
    panel.close()
    left = stream.getvalue()
    panel.close()
    assert stream.getvalue() == left
