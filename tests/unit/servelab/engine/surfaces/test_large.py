"""Large requests that are read on another thread touch the engine's state in the loop only."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from servelab.engine.exchange import Request

CHAT = {"model": "llama-8b", "messages": [{"role": "user", "content": "hi"}]}
GENERATE = {"inputs": "hi"}
ENGINES = [
    (EngineType.VLLM, "/v1/chat/completions", CHAT),
    (EngineType.SGLANG, "/v1/chat/completions", CHAT),
    (EngineType.SGLANG, "/generate", {"text": "hi"}),
    (EngineType.TGI, "/generate", GENERATE),
    (EngineType.TGI, "/v1/chat/completions", CHAT),
    (EngineType.TRITON, "/v1/chat/completions", CHAT),
]


class Thread:
    """An exchange of a handler on another thread: acts wait for the loop."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.acts: list[Callable[[], None]] = []

    def later(self, act: Callable[[], None]) -> None:
        self.acts.append(act)

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Nobody goes."""


@pytest.mark.parametrize(("engine", "path", "body"), ENGINES)
def test_large_requests_may_be_read_aside(
    hosted: Any, engine: EngineType, path: str, body: dict[str, Any]
) -> None:
    routes = {route.path: route for route in hosted(engine).surface.routes()}
    assert routes[path].aside


@pytest.mark.parametrize(("engine", "path", "body"), ENGINES[1:5])
def test_nothing_is_generated_before_the_loop_does_it(
    hosted: Any, engine: EngineType, path: str, body: dict[str, Any]
) -> None:
    host = hosted(engine)
    route = next(each for each in host.surface.routes() if each.path == path)
    headers = {"content-type": "application/json"}
    exchange = Thread(Request("POST", path, path, headers, json.dumps(body).encode()))
    route.handler(exchange)
    assert (host.replies, bool(exchange.acts)) == ([], True)
    for act in exchange.acts:
        act()
    assert len(host.replies) == 1
