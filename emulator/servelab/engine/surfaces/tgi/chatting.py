"""Chats: functions that may be called, and the second answer where the model calls none."""

from collections.abc import Sequence
from typing import Any

from servelab.engine.exchange import Exchange
from servelab.engine.metrics import tgi as metrics
from servelab.engine.replying import Reply
from servelab.engine.surfaces.surface import Host
from servelab.engine.surfaces.tgi import asking, declining, openai, origins, refusals, tools
from servelab.engine.surfaces.tgi.asking import Asked, Input
from servelab.engine.surfaces.tgi.refusals import Refusal
from servelab.engine.surfaces.tgi.starting import Refuse, Starter


def templated(body: dict[str, Any]) -> Input:
    """A chat in its template, with the functions it offers. Raises Refusal."""
    if body["response_format"] is not None and body["tools"] is not None:
        raise refusals.tool("Grammar and tools are mutually exclusive")
    return asking.templated(body["messages"], tools.prompted(body, tools.used(body)))


class Chats:
    """The chats of one router."""

    def __init__(
        self, host: Host, exporter: metrics.Exporter, starter: Starter, model_id: str
    ) -> None:
        self._host = host
        self._exporter = exporter
        self._starter = starter
        self._model_id = model_id

    def put(self, exchange: Exchange, body: dict[str, Any]) -> None:
        """Have a chat answered. Raises Refusal."""
        exchange.later(self._exporter.count_arrival)
        given = templated(body)
        exchange.later(self._exporter.count_arrival)
        offered = tools.used(body)
        if tools.declines(body, offered):
            self._decline(exchange, body, given)
        else:
            self._answer(exchange, body, given, offered)

    def _answer(
        self,
        exchange: Exchange,
        body: dict[str, Any],
        given: Input,
        offered: Sequence[tools.Tool] = (),
        declined: declining.Declined | None = None,
    ) -> None:
        model = body["model"] if body["model"] not in (None, "tgi") else self._model_id
        head = openai.Head(model, int(self._host.unix_s()))
        answered, logprobs = self._exporter.count_answered, bool(body["logprobs"])
        calls, stream = bool(offered), body["stream"]
        write = tools.written(offered) if calls else None
        parameters = asking.chat_parameters(body)
        ask = self._starter.ask([given], parameters, stream=stream, chat=True, write=write)

        def whole(asked: Asked) -> Reply:
            return openai.Chat(
                *(asked, head, answered), logprobs=logprobs, calls=calls, declined=declined
            )

        def streamed(asked: Asked) -> Reply:
            wanted = body["stream_options"]["include_usage"]
            call_id = tools.next_id(body["messages"]) or self._host.name()
            deltas = tools.Deltas(call_id) if calls else None
            return openai.ChatStream(
                *(asked, head, answered),
                logprobs=logprobs,
                include_usage=wanted,
                deltas=deltas,
            )

        refuse = self._refuse(exchange, given, body, declined)
        self._starter.start(exchange, ask, streamed if stream else whole, refuse)

    def _decline(self, exchange: Exchange, body: dict[str, Any], given: Input) -> None:
        """Have the model say that it calls no function, and then answer without any."""
        stream, parameters = body["stream"], asking.chat_parameters(body)
        ask = self._starter.ask(
            *([given], parameters), stream=stream, chat=True, write=tools.declined
        )
        plain = asking.templated(body["messages"])

        def again(exchange: Exchange, declined: declining.Declined) -> None:
            exchange.later(self._exporter.count_arrival)
            self._answer(exchange, body, plain, declined=declined)

        def build(asked: Asked) -> Reply:
            return declining.Declining(
                *(asked, self._exporter.count_answered, again),
                lambda: self._exporter.count_failure("dropped"),
                streams=stream,
            )

        self._starter.start(exchange, ask, build, self._refuse(exchange, given, body, None))

    def _refuse(
        self,
        exchange: Exchange,
        given: Input,
        body: dict[str, Any],
        declined: declining.Declined | None,
    ) -> Refuse | None:
        """How a refusal goes out; None: it is raised, while that still has an answer."""
        if body["stream"]:
            return self._starter.openai_refuse(exchange, len(given.text))
        if declined is None:
            return None

        def respond(refusal: Refusal) -> None:
            exchange.respond(origins.crossed(refusal.response()))

        return respond
