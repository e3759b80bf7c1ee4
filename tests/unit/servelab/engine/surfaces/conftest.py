"""Surfaces on an engine that is a fake."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Served
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.intake import QueueFull
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.exchange import Exchange, Request, Response
from servelab.engine.metrics.exporting import Exporter, Load
from servelab.engine.replying import Reply
from servelab.engine.surfaces import registry
from servelab.engine.surfaces.surface import State, Surface

CONFIG = CoreConfig(8, 2048, 2048, kv_blocks=1000)


@dataclass
class Still:
    """The gauges of an engine at rest."""

    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    prefix_tokens: tuple[int, int] = (0, 0)


@dataclass
class Answered:
    """An exchange that keeps what was sent."""

    request: Request
    status: int = 0
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    ended: bool = False
    callbacks: list[Callable[[], None]] = field(default_factory=list)

    def respond(self, response: Response) -> None:
        self.begin(response)
        self.ended = True

    def begin(self, response: Response) -> None:
        self.status, self.body = response.status, response.body
        self.headers = dict(response.headers)

    def write(self, data: bytes) -> None:
        self.body += data

    def end(self) -> None:
        self.ended = True

    def fail(self, error: Exception) -> None:
        self.ended = True

    def on_gone(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    @property
    def document(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The JSON events of a stream, and its end."""
        blocks = self.body.decode().strip().split("\n\n")
        data = [block.removeprefix("data: ").strip() for block in blocks]
        return [each if each == "[DONE]" else json.loads(each) for each in data]


class FakeHost:
    """An engine that takes requests and does nothing, or refuses them."""

    def __init__(self, engine: EngineType, *options: str, full: bool = False) -> None:
        given = tuple((name, "") for name in options)
        profile = profiles.of(engine)
        self.spec = EngineSpec(
            "llama-8b", "llama-8b", CONFIG, SteadyLaw(0.01), 0.9, 1, profile, given
        )
        self.served = Served("llama-8b", CONFIG.max_model_tokens)
        self.created_unix_s = 1
        self.state = State.READY
        self.load: Load = Still()
        outside = registry.of(engine, given)
        self.exporter: Exporter = outside.exporter(self.spec, self.load, 1.0)
        self.open_requests = 0
        self.replies: list[Reply] = []
        self._full = full
        self.surface: Surface = outside.surface(self)

    def unix_s(self) -> float:
        return 1000.0

    def name(self) -> str:
        return "0" * 32

    def settle(self) -> None:
        pass

    def generate(self, exchange: Exchange, reply: Reply) -> None:
        if self._full:
            raise QueueFull("as many requests wait as may")
        self.replies.append(reply)

    def ask(
        self, method: str, path: str, body: object = None, *, loading: bool = False
    ) -> Answered:
        """What the surface answers."""
        raw = b"" if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"content-type": "application/json"}
        request = Request(method, path, path.partition("?")[0], headers, raw)
        exchange = Answered(request)
        route = next(
            r for r in self.surface.routes() if (r.method, r.path) == (method, request.path)
        )
        handler = route.while_loading if loading else route.handler
        if handler is None:
            exchange.respond(self.surface.unready(request))
            return exchange
        try:
            handler(exchange)
        except Exception as error:
            exchange.respond(self.surface.refused(request, error))
        return exchange


@pytest.fixture
def hosted() -> Callable[..., FakeHost]:
    """Makes a surface's fake engine: of a type, with options by name, ``full`` or not."""
    return FakeHost
