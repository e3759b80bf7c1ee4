"""Answers in the making: what the driver feeds, and how they go to the client."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from mypy_extensions import mypyc_attr

from servelab.engine.calls import Call, Prompt
from servelab.engine.core.sequences import Finish, FirstToken
from servelab.engine.exchange import EVENT_STREAM, Exchange, Response
from servelab.engine.text.answers import Answer
from servelab.engine.text.lengths import Ending


class Choice:
    """One sequence of a request."""

    __deletable__ = ("reply",)  # for mypyc, which keeps attributes else
    __slots__ = (
        "_emitted",
        "_held",
        "answer",
        "cached_tokens",
        "ended",
        "ending",
        "finished",
        "index",
        "offset",
        "pending",
        "prompt",
        "reply",
        "sent",
    )

    def __init__(self, reply: "Reply", answer: Answer, prompt: Prompt, ending: Ending) -> None:
        self.reply = reply
        self.answer = answer
        self.prompt = prompt
        self.ending = ending
        self.index = 0
        self.pending = 0  # tokens that came and are not told yet
        self.sent = 0
        self.cached_tokens = 0  # of the prompt, found in the prefix cache
        self.offset = 0  # characters of the tokens whose probabilities are told
        self.finished: Finish | None = None
        self.ended = False  # told to the client
        self._held = ""
        self._emitted = 0

    def first(self, first: FirstToken) -> None:
        """The first token is there."""
        self.cached_tokens = first.cached_tokens

    def tokens(self, count: int) -> None:
        """So many more tokens are there."""
        self.pending += count

    def finish(self, finish: Finish) -> None:
        """It has ended."""
        if self.finished is None:
            self.reply.over += 1
        self.finished = finish

    @property
    def reason(self) -> str:
        """Why it ended, once it has."""
        return "" if self.finished is None else self.finished.reason

    @property
    def stop_reason(self) -> str | int | None:
        """The text or token id that stopped it, if one did."""
        if self.finished is None or self.finished.output_tokens != self.ending.tokens:
            return None
        return self.ending.stop_reason

    @property
    def text(self) -> str:
        """The whole answer so far."""
        text = self.answer.text(self.sent + self.pending)
        kept = self.ending.characters
        return text if kept is None else text[:kept]

    def delta(self, piece: str, hold: int, *, ended: bool) -> str:
        """What can be sent after one more token; ``hold`` characters may belong to a stop."""
        text = self._held + piece
        if not ended:
            keep = max(0, len(text) - hold)
        elif self.ending.characters is None:
            keep = len(text)
        else:
            keep = max(0, self.ending.characters - self._emitted)
        self._held = text[keep:]
        self._emitted += keep
        return text[:keep]


@mypyc_attr(allow_interpreted_subclasses=True)
class Reply(ABC):
    """A request's answer. It is opened once the core has taken the request."""

    streams = True  # tokens are sent as they come

    def __init__(self, call: Call) -> None:
        self.call = call
        self.choices: list[Choice] = []
        self.over = 0  # choices that have ended
        self.ids: Sequence[str] = ()  # of its sequences in the core, once it is open
        self._exchange: Exchange | None = None

    def add(self, choices: Sequence[Choice]) -> None:
        """Take the choices, in order of index."""
        for choice in choices:
            choice.index = len(self.choices)
            self.choices.append(choice)

    def open(self, exchange: Exchange) -> None:
        """Answer here, now and at each flush."""
        self._exchange = exchange
        self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Send what came since the last flush."""

    def fail(self, error: Exception) -> None:
        """It cannot be completed, for a fault of our own."""
        exchange = self._exchange
        self.forget()
        if exchange is not None:
            exchange.fail(error)

    def forget(self) -> None:
        """It is over, and so are its choices.

        Reply and choices hold each other: left to the collector, thousands would pile up.
        """
        self._exchange = None
        for choice in self.choices:
            del choice.reply
        self.choices.clear()

    @property
    def finished(self) -> bool:
        """Whether all choices have ended."""
        return self.over == len(self.choices)

    @property
    def prompt_tokens(self) -> int:
        """A prompt counts once, however many choices it has."""
        if len(self.call.prompts) == 1:
            return self.call.prompts[0].tokens
        return sum(prompt.tokens for prompt in self.call.prompts)

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that came from the prefix cache; of a prompt, the first choice counts."""
        return sum(choice.cached_tokens for choice in self.choices[:: self.call.n])

    @property
    def completion_tokens(self) -> int:
        """Of all choices so far."""
        return sum(choice.sent + choice.pending for choice in self.choices)


@mypyc_attr(allow_interpreted_subclasses=True)
class WholeReply(Reply):
    """An answer sent when all its choices have ended."""

    streams = False

    @abstractmethod
    def response(self) -> Response:
        """The whole answer."""

    def flush(self) -> None:
        exchange = self._exchange
        if exchange is not None and self.finished:
            exchange.respond(self.response())
            self.forget()


@mypyc_attr(allow_interpreted_subclasses=True)
class StreamedReply(Reply):
    """An answer sent as it comes.

    ``begin``, ``tell`` and ``finish`` append bytes to the parts of one write.
    """

    def __init__(self, call: Call) -> None:
        super().__init__(call)
        self.head = Response(content_type=EVENT_STREAM)
        self._begun = False
        longest = max((len(text) - 1 for text in call.stop), default=0)
        self._hold = 0 if call.include_stop else longest

    def begin(self, parts: list[bytes]) -> None:
        """What comes before the first token."""

    @abstractmethod
    def tell(self, choice: Choice, text: str, parts: list[bytes]) -> None:
        """One more token of a choice; ``choice.ended`` if it is the last."""

    @abstractmethod
    def finish(self, parts: list[bytes]) -> None:
        """What comes after the last token; choices that are not ``ended`` had no last one."""

    def collect(self, parts: list[bytes]) -> None:
        """All pending tokens; choices that came together are told in turns."""
        while ready := [choice for choice in self.choices if choice.pending]:
            for choice in ready:
                piece = choice.answer.pieces(choice.sent, 1)[0].decode()
                choice.sent += 1
                choice.pending -= 1
                choice.ended = choice.finished is not None and not choice.pending
                self.take(choice, piece, parts)

    def take(self, choice: Choice, piece: str, parts: list[bytes]) -> None:
        """Tell one more token with this text, less what may belong to a stop."""
        self.tell(choice, choice.delta(piece, self._hold, ended=choice.ended), parts)

    def close(self, parts: list[bytes]) -> None:
        """Tell of the choices that had no last token that they have ended."""
        for choice in self.choices:
            if not choice.ended:
                choice.ended = True
                self.tell(choice, "", parts)

    def open(self, exchange: Exchange) -> None:
        exchange.begin(self.head)
        super().open(exchange)

    def flush(self) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        parts: list[bytes] = []
        if not self._begun and any(c.pending or c.finished is not None for c in self.choices):
            self._begun = True
            self.begin(parts)
        self.collect(parts)
        finished = self.finished
        if finished:
            self.finish(parts)
        if parts:
            exchange.write(b"".join(parts))
        if finished:
            self.forget()
            exchange.end()
