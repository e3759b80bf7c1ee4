"""Surfaces on an engine that is a fake."""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine import exchange as exchanges
from servelab.engine.assembly import EngineSpec
from servelab.engine.calls import Served
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.intake import QueueFull
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import Finish, FinishReason
from servelab.engine.exchange import Exchange, Request, Response
from servelab.engine.metrics.exporting import Exporter, Load
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import registry
from servelab.engine.surfaces.surface import State, Surface
from servelab.engine.text.lengths import Ending

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

    def later(self, act: Callable[[], None]) -> None:
        act()

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

    def __init__(
        self, engine: EngineType, *options: str | tuple[str, str], full: bool = False
    ) -> None:
        given = tuple((each, "") if isinstance(each, str) else each for each in options)
        profile = profiles.of(engine)
        self.spec = EngineSpec(
            "llama-8b", "llama-8b", CONFIG, SteadyLaw(0.01), 0.9, 1, profile, given
        )
        self.served = Served("llama-8b", CONFIG.max_model_tokens, given)
        self.created_unix_s = 1
        self.state = State.READY
        self.load: Load = Still()
        outside = registry.of(engine, given)
        self.exporter: Exporter = outside.exporter(self.spec, self.load, 1.0)
        self.open_requests = 0
        self.replies: list[Reply] = []
        self.exchanges: list[Exchange] = []  # of the replies
        self.start_up_s = 0.0
        self.held: list[str] = []  # how it was told to hold, and to go on
        self.forgets = True
        self._full = full
        self.surface: Surface = outside.surface(self)

    def unix_s(self) -> float:
        return 1000.0

    def name(self) -> str:
        return "0" * 32

    def settle(self) -> None:
        pass

    @property
    def choices(self) -> list[Choice]:
        return [choice for reply in self.replies for choice in reply.choices]

    def abort(self, choices: Collection[Choice]) -> None:
        for choice in list(choices):
            scheduled_s = 0.1 if choice.sent or choice.pending else None
            made = choice.sent + choice.pending
            aborted = Finish("a", FinishReason.ABORT, 2.0, 0.0, scheduled_s, None, None, 3, made, 0)
            choice.finish(aborted)
            choice.reply.flush()

    def tell(self, exchange: Any, answer: Any, tokens: int, reason: FinishReason) -> None:
        """Let the last request's answer come token by token, and end for that reason."""
        reply = self.replies[-1]
        choice = Choice(reply, answer, reply.call.prompts[0], Ending(tokens, reason))
        reply.add([choice])
        reply.open(exchange)
        for left in reversed(range(tokens)):
            choice.tokens(1)
            if not left:
                choice.finish(Finish("a", reason, 2.0, 0.0, 0.1, 0.5, 2.0, 3, tokens, 0))
            reply.flush()

    def answered(self, path: str, body: dict[str, Any], most: int | None = None) -> Answered:
        """The exchange of an answer that is told so, up to so many tokens."""
        exchange = self.ask("POST", path, body)
        answer = self.replies[-1].call.answer(1)
        reason = FinishReason.LENGTH if most else FinishReason.STOP
        self.tell(exchange, answer, most or answer.tokens or 3, reason)
        return exchange

    def hold(self, *, requeue: bool = False) -> None:
        self.held.append("requeued" if requeue else "held")

    def release(self) -> None:
        self.held.append("released")

    def forget(self) -> bool:
        return self.forgets

    def generate(self, exchange: Exchange, reply: Reply) -> None:
        if self._full:
            raise QueueFull("as many requests wait as may")
        self.replies.append(reply)
        self.exchanges.append(exchange)

    def exchange(self, request: Request) -> Answered:
        """A way back for that request."""
        return Answered(request)

    def ask(
        self, method: str, path: str, body: object = None, *, loading: bool = False
    ) -> Answered:
        """What the surface answers."""
        raw = b"" if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"content-type": "application/json"}
        asked = path.partition("?")[0]
        route = next(
            each
            for each in self.surface.routes()
            if each.method == method and exchanges.fits(each.path, asked)
        )
        found = exchanges.pattern(route.path).fullmatch(asked)
        parameters = found.groupdict() if found is not None else {}
        exchange = Answered(Request(method, path, asked, headers, raw, parameters=parameters))
        handler = route.while_loading if loading else route.handler
        if handler is None:
            exchange.respond(self.surface.unready(exchange.request))
            return exchange
        try:
            handler(exchange)
        except Exception as error:
            exchange.respond(self.surface.refused(exchange.request, error))
        return exchange


@pytest.fixture
def hosted() -> Callable[..., FakeHost]:
    """Makes a surface's fake engine: of a type, with options by name or as pairs, or ``full``."""
    return FakeHost
