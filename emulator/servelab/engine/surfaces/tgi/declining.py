"""A chat's answer that it calls no function: the router reads it and asks anew, without functions.

After router/src/server.rs (chat_completions) and chat.rs: in a stream as soon as the name is read,
and what is still to come is dropped; else when the answer is whole.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from servelab.engine.exchange import Exchange, Request, Response
from servelab.engine.replying import Choice, Reply
from servelab.engine.surfaces import events
from servelab.engine.surfaces.tgi import origins, replies, tools
from servelab.engine.surfaces.tgi.asking import Asked
from servelab.engine.surfaces.tgi.refusals import Refusal
from servelab.engine.surfaces.tgi.replies import Answered


@dataclass(frozen=True, slots=True)
class Declined:
    """The answer that was not passed on: its tokens with their ids, and how it ended."""

    made: Sequence[tuple[int, str]]
    reason: str


Again = Callable[[Exchange, Declined], None]


class Declining(Reply):
    """Keeps the answer to itself, and then has ``again`` answer in its stead.

    ``dropped`` is told where it had not ended by then.
    """

    def __init__(
        self,
        asked: Asked,
        answered: Answered,
        again: Again,
        dropped: Callable[[], None],
        *,
        streams: bool,
    ) -> None:
        super().__init__(asked.call)
        self.streams = streams
        self._characters = asked.characters
        self._answered = answered
        self._again = again
        self._dropped = dropped
        self._early = False

    def open(self, exchange: Exchange) -> None:
        """A stream begins before anything is known."""
        if self.streams:
            exchange.begin(replies.stream_head(self._characters))
        super().open(exchange)

    def flush(self) -> None:
        """See whether it has said so."""
        if not self.choices:
            return
        (choice,) = self.choices
        exchange, finished = self._exchange, self.finished
        if exchange is not None and (finished or self.streams):
            self._read(exchange, choice, finished=finished)
        if finished:
            if self._early:
                self._dropped()
            else:
                self._answered(replies.finishes([choice]))
            self.forget()

    def _read(self, exchange: Exchange, choice: Choice, *, finished: bool) -> None:
        """What there is of it; the client may have allowed too few tokens even for that."""
        try:
            if not self.streams:
                tools.called(choice.text)
            elif not tools.says_no(choice.text):
                if finished:
                    exchange.write(events.DONE)
                    exchange.end()
                return
        except Refusal as refusal:
            exchange.respond(origins.crossed(refusal.response()))
            return
        self._exchange, self._early = None, not finished
        declined = Declined(replies.made(choice), replies.chat_reason(choice))
        self._again(Begun(exchange) if self.streams else exchange, declined)


class Begun:
    """An Exchange whose stream has begun already."""

    def __init__(self, inner: Exchange) -> None:
        self._inner = inner

    @property
    def request(self) -> Request:
        """The inner one's."""
        return self._inner.request

    def respond(self, response: Response) -> None:
        """It is too late for a head."""
        self.write(response.body)
        self.end()

    def begin(self, response: Response) -> None:
        """It is too late for a head."""
        if response.body:
            self.write(response.body)

    def write(self, data: bytes) -> None:
        """As the inner one."""
        self._inner.write(data)

    def end(self) -> None:
        """As the inner one."""
        self._inner.end()

    def fail(self, error: Exception) -> None:
        """As the inner one."""
        self._inner.fail(error)

    def on_gone(self, callback: Callable[[], None]) -> None:
        """As the inner one."""
        self._inner.on_gone(callback)

    def later(self, act: Callable[[], None]) -> None:
        """As the inner one."""
        self._inner.later(act)
