"""Answers that fail once they have begun: as no token may come first, or as a check comes late."""

from collections.abc import Sequence

from servelab.engine import exchange as exchanges
from servelab.engine.calls import Call
from servelab.engine.exchange import Exchange, Response
from servelab.engine.replying import Choice, Reply, StreamedReply, WholeReply
from servelab.engine.surfaces.vllm.refusals import Refusal


def instead(reply: Reply, refusal: Refusal) -> Reply:
    """What comes where the first token was due: a refusal, or a stream that ends with it."""
    if isinstance(reply, StreamedReply):
        return Stream(reply, refusal)
    return Whole(reply, refusal)


def late(exchange: Exchange, reply: Reply, refusal: Refusal) -> None:
    """Say no in a stream that is open already, as the real engine does."""
    exchange.begin(Response(content_type=exchanges.EVENT_STREAM))
    end = refusal.last()
    if end is not None:
        exchange.write(end)
        exchange.end()
        return
    assert isinstance(reply, StreamedReply)
    parts: list[bytes] = []
    reply.begin(parts)
    exchange.write(b"".join(parts))
    exchange.fail(refusal)


class Whole(WholeReply):
    """A refusal in the place of an answer."""

    def __init__(self, reply: Reply, refusal: Refusal) -> None:
        super().__init__(_one_token(reply))
        self._refusal = refusal

    def response(self) -> Response:
        return Response(self._refusal.status, self._refusal.body())


class Stream(StreamedReply):
    """A stream that begins as another one, and then tells of the refusal or is cut."""

    def __init__(self, reply: StreamedReply, refusal: Refusal) -> None:
        super().__init__(_one_token(reply))
        self._reply = reply
        self._refusal = refusal

    def add(self, choices: Sequence[Choice]) -> None:
        self._reply.add(choices)
        self.choices += choices

    def begin(self, parts: list[bytes]) -> None:
        self._reply.begin(parts)

    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """No token is told."""

    def finish(self, parts: list[bytes]) -> None:
        parts.append(self._refusal.last() or b"")

    def flush(self) -> None:
        exchange = self._exchange
        if exchange is None or not self.finished or self._refusal.last() is not None:
            super().flush()
            return
        parts: list[bytes] = []
        self.begin(parts)
        exchange.write(b"".join(parts))
        self.fail(self._refusal)


def _one_token(reply: Reply) -> Call:
    return reply.call._replace(max_tokens=1, min_tokens=0)
