"""How the router puts requests into the engine, and how it says no to them."""

from collections.abc import Callable, Sequence
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.core.intake import QueueFull
from servelab.engine.exchange import Exchange
from servelab.engine.metrics import tgi as metrics
from servelab.engine.replying import Reply
from servelab.engine.surfaces import events
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tgi import asking, limits, refusals, replies
from servelab.engine.surfaces.tgi.asking import Asked, Input
from servelab.engine.surfaces.tgi.refusals import Refusal
from servelab.engine.text import writing

Ask = Callable[[], Asked]
Build = Callable[[Asked], Reply]
Refuse = Callable[[Refusal], None]


def refusal_of(error: Exception) -> Refusal:
    """An error as the router's."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, QueueFull):
        return refusals.overloaded()
    if isinstance(error, ModelServeError):
        return refusals.invalid(str(error))
    return refusals.failed("the engine failed on this request")


class Starter:
    """Of one router."""

    def __init__(self, host: Host, bounds: limits.Limits, exporter: metrics.Exporter) -> None:
        self._host = host
        self._limits = bounds
        self._exporter = exporter

    def ask(
        self,
        given: Sequence[Input],
        parameters: dict[str, Any],
        *,
        stream: bool = False,
        chat: bool = False,
        write: writing.Write | None = None,
    ) -> Ask:
        seed = int(self._host.name()[:8], 16)

        def ask() -> Asked:
            wanted = len(given) * (1 if stream else max(1, parameters["best_of"] or 1))
            if self._host.open_requests + wanted > self._limits.concurrent:
                raise refusals.overloaded()
            return asking.check(
                *(given, parameters, self._limits),
                seed=seed,
                chat=chat,
                stream=stream,
                write=write,
            )

        return ask

    def start(
        self,
        exchange: Exchange,
        ask: Ask,
        build: Build,
        refuse: Callable[[Refusal], None] | None = None,
    ) -> None:
        """Put a request into the core. In a stream a refusal is an event of it."""
        try:
            asked = ask()
        except Refusal as refusal:
            self._failed(exchange, refusal)
            if refuse is None:
                raise
            refuse(refusal)
        else:
            exchange.later(lambda: self._put(exchange, asked, build, refuse))

    def _put(self, exchange: Exchange, asked: Asked, build: Build, refuse: Refuse | None) -> None:
        try:
            self._host.generate(exchange, build(asked))
        except QueueFull as full:
            if refuse is None:
                raise
            refuse(refusal_of(full))
        else:
            for prompt in asked.call.prompts:
                limit = asked.call.limit_tokens(prompt, self._host.served)
                self._exporter.count_validated(prompt.tokens, min(limit, asking.CHUNK_TOKENS))

    def fail(self, exchange: Exchange, refusal: Refusal) -> None:
        self._failed(exchange, refusal)
        raise refusal

    def _failed(self, exchange: Exchange, refusal: Refusal) -> None:
        exchange.later(lambda: self._exporter.count_failure(refusal.label))

    def openai_refuse(self, exchange: Exchange, characters: int) -> Callable[[Refusal], None]:
        def refuse(refusal: Refusal) -> None:
            self.refuse_stream(exchange, characters, refusal.openai_event() + events.DONE)

        return refuse

    def refuse_stream(self, exchange: Exchange, characters: int, events: bytes) -> None:
        exchange.begin(replies.stream_head(characters))
        exchange.write(events)
        exchange.end()
