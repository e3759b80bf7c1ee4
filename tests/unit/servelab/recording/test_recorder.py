"""A recorder at an API server that now and then does not answer."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors
from modelserve.testing import apiserver
from modelserve.testing import clock as clocks
from servelab.recording import cases, keeping, recorder


class Server(apiserver.MemoryCluster):
    """``unanswered`` says which calls time out."""

    def __init__(self, unanswered: Callable[[str, str], bool]) -> None:
        super().__init__()
        self.unanswered = unanswered
        self.before_call = lambda call: self.ask(call.verb, call.name)

    def ask(self, verb: str, what: str) -> None:
        if self.unanswered(verb, what):
            raise errors.Unavailable(f"{verb} {what}: no answer")

    async def text(self, path: str, query: Mapping[str, str]) -> tuple[int, str]:
        self.ask("text", path)
        return 200, "a line\n"

    async def request(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        raise NotImplementedError


class Node:
    kubeconfig = Path("kubeconfig")

    def start_kubelet(self) -> None: ...

    def stop_kubelet(self) -> None: ...


def case(name: str) -> cases.Case:
    return cases.Case(name=name, seconds=5, pod={"containers": [{"name": "main"}]})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.json"


async def record(out: Path, unanswered: Callable[[str, str], bool]) -> keeping.Kept:
    clock, kept = clocks.ManualClock(), keeping.Kept(out, ["a", "b"])
    made = recorder.Recorder(Server(unanswered), Node(), lambda told: None, clock)
    running = asyncio.create_task(made.record([case("a"), case("b")], kept))
    for _ in range(400):
        await clock.advance(1.0)
        if running.done():
            break
    await running
    return kept


def first(count: int, verb: str, what: str) -> Callable[[str, str], bool]:
    """Of the calls with that verb about that, the first so many are not answered."""
    seen: list[str] = []

    def unanswered(asked: str, about: str) -> bool:
        seen.extend([about] if asked == verb and what in about else [])
        return asked == verb and what in about and len(seen) <= count

    return unanswered


def recordings(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def scenarios(path: Path) -> list[str]:
    return [each["scenario"] for each in recordings(path)]


async def test_all_is_recorded_where_all_is_answered(out: Path) -> None:
    kept = await record(out, lambda verb, what: False)
    assert (kept.missing, scenarios(out)) == ([], ["a", "b"])


@pytest.mark.parametrize(("verb", "what"), [("text", "pods/a/log"), ("list", ""), ("create", "a")])
async def test_what_is_not_answered_at_first_is_asked_again(
    out: Path, verb: str, what: str
) -> None:
    kept = await record(out, first(2, verb, what))
    assert kept.missing == []


async def test_one_case_that_cannot_be_recorded_leaves_the_others(out: Path) -> None:
    kept = await record(out, first(99, "text", "pods/a/log"))
    assert (kept.missing, scenarios(out)) == (["a"], ["b"])


async def test_a_case_begins_anew_without_what_was_left_of_it(out: Path) -> None:
    await record(out, first(3, "text", "pods/a/log"))
    (found, _) = recordings(out)
    assert [each["type"] for each in found["updates"]] == ["ADDED"]
