"""What trainers, benchmarks and operators tell an SGLang server to do: pause, abort, empty caches.

A pause holds new requests back until the server continues. By default it also aborts what is
there; ``in_place`` stops the scheduler as it is, ``retract`` puts all that run back into its queue.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from pydantic import BaseModel

from servelab.engine.exchange import Exchange, Response, Route
from servelab.engine.metrics import sglang as metrics
from servelab.engine.surfaces import fastapi
from servelab.engine.surfaces.refusing import Refusal, Shape
from servelab.engine.surfaces.sglang import asking, making, refusals
from servelab.engine.surfaces.surface import Host, State

FLUSHED = (
    "Cache flushed.\nPlease check backend logs for more details. (When there are running or "
    "waiting requests, the operation will not be performed.)\n"
)
NOT_FLUSHED = "Flush cache failed.\n"
BOTH, SET = ("GET", "POST"), ("POST", "PUT")
# Paths with several methods, all of which the router names to who comes with another one.
MANY = frozenset(
    {
        *("/flush_cache", "/open_session", "/close_session", "/set_internal_state"),
        *("/start_profile", "/stop_profile", "/freeze_gc"),
    }
)
# What a scheduler without speculation and without stages lets be set while it runs.
SETTABLE = "pp_max_micro_batch_size"


class Abort(BaseModel):
    rid: str | None = ""
    abort_all: bool = False


class Pause(BaseModel):
    mode: Literal["abort", "retract", "in_place"] = "abort"


class Continue(BaseModel):
    torch_empty_cache: bool = True


class OpenSession(BaseModel):
    capacity_of_str_len: int
    session_id: str | None = None
    streaming: bool | None = None
    timeout: float | None = None


class CloseSession(BaseModel):
    session_id: str


class SetState(BaseModel):
    server_args: dict[str, int | float]


class Profile(BaseModel):
    output_dir: str | None = None
    start_step: int | None = None
    num_steps: int | None = None


class Control:
    """The state a server can be put into, and the routes that do it."""

    def __init__(self, host: Host, exporter: metrics.Exporter | None) -> None:
        self._host = host
        self._exporter = exporter
        self._sessions: set[str] = set()
        self._kept: dict[Exchange, Callable[[], None]] = {}
        self.paused = False
        self._healthy = True

    def routes(self) -> Sequence[Route]:
        """Its routes."""
        told: list[tuple[Sequence[str], str, Callable[[Exchange], None]]] = [
            (BOTH, "/flush_cache", self._flush),
            (("POST",), "/abort_request", self._abort),
            (("POST",), "/pause_generation", self._pause),
            (("POST",), "/continue_generation", self._continue),
            (BOTH, "/open_session", self._open_session),
            (BOTH, "/close_session", self._close_session),
            (SET, "/set_internal_state", self._set_state),
            (BOTH, "/start_profile", self._start_profile),
            (BOTH, "/stop_profile", self._stop_profile),
            (BOTH, "/freeze_gc", self._freeze),
        ]
        return [
            Route(method, path, handler) for methods, path, handler in told for method in methods
        ]

    @property
    def healthy(self) -> bool:
        """What the last check of its health found, without one now."""
        return self._host.state is State.READY and self._healthy

    def checked(self) -> bool:
        """Whether it is healthy: a paused one does not answer the request that would show it."""
        # The real one finds out after 20 s.
        self._healthy = not self.paused
        return self.healthy

    def start(self, exchange: Exchange, generate: Callable[[], None]) -> None:
        """Put a request into the core, now or once the server continues."""
        exchange.later(lambda: self._start(exchange, generate))

    def _start(self, exchange: Exchange, generate: Callable[[], None]) -> None:
        if not self.paused:
            generate()
            return
        self._kept[exchange] = generate
        exchange.on_gone(lambda: self._drop(exchange))

    def _drop(self, exchange: Exchange) -> None:
        self._kept.pop(exchange, None)

    def _flush(self, exchange: Exchange) -> None:
        _timeout(exchange.request.query.get("timeout", "0"))
        done = self._host.forget()
        text = FLUSHED if done else NOT_FLUSHED
        exchange.respond(Response(200 if done else 400, text.encode(), None))

    def _abort(self, exchange: Exchange) -> None:
        told = asking.native(Abort, exchange.request)
        if told.abort_all:
            self._host.abort(self._host.choices)
        elif told.rid:
            self.abort(told.rid)
        exchange.respond(Response(content_type=None))

    def abort(self, rid: str) -> None:
        """End a request by its name, and with it those whose names begin with that one."""
        # The scheduler looks at beginnings, but is asked only for a name that is known.
        names = {choice: making.name(choice) for choice in self._host.choices}
        if rid in names.values():
            self._host.abort([each for each, name in names.items() if name.startswith(rid)])

    def _pause(self, exchange: Exchange) -> None:
        mode = asking.native(Pause, exchange.request).mode
        self.paused = True
        if mode == "abort":
            self._host.abort(self._host.choices)
        else:
            self._host.hold(requeue=mode == "retract")
        if mode == "retract" and self._exporter is not None:
            self._exporter.stopped()
        _well(exchange, "Generation paused successfully.")

    def _continue(self, exchange: Exchange) -> None:
        asking.native(Continue, exchange.request)
        self.paused = False
        self._host.release()
        _well(exchange, "Generation continued successfully.")
        kept, self._kept = self._kept, {}
        for waiting, generate in kept.items():
            try:
                generate()
            except Exception as error:
                waiting.fail(error)

    def _open_session(self, exchange: Exchange) -> None:
        asked = asking.native(OpenSession, exchange.request)
        if asked.streaming:
            raise Refusal(
                "Streaming sessions are disabled. Please relaunch with --enable-streaming-session.",
                shape=Shape.NESTED,
            )
        name = self._host.name() if asked.session_id is None else asked.session_id
        if name in self._sessions:
            raise Refusal(
                "Failed to open the session. Check if a session with the same id is still open.",
                shape=Shape.NESTED,
            )
        self._sessions.add(name)
        exchange.respond(fastapi.document(name))

    def _close_session(self, exchange: Exchange) -> None:
        self._sessions.discard(asking.native(CloseSession, exchange.request).session_id)
        exchange.respond(Response(content_type=None))

    def _set_state(self, exchange: Exchange) -> None:
        most = self._host.spec.config.max_sequences
        told = asking.native(SetState, exchange.request).server_args
        taken = all(name == SETTABLE and 1 <= value <= most for name, value in told.items())
        exchange.respond(fastapi.document([taken]))

    def _start_profile(self, exchange: Exchange) -> None:
        if exchange.request.body:
            asking.native(Profile, exchange.request)
        _say(exchange, "Start profiling.\n")

    def _stop_profile(self, exchange: Exchange) -> None:
        _say(exchange, "Stop profiling. This will take some time.\n")

    def _freeze(self, exchange: Exchange) -> None:
        _say(exchange, "Garbage collection frozen.\n")


def _timeout(text: str) -> None:
    """Seconds to wait for an idle server; the mock engine does not wait. Raises Refusal."""
    try:
        value = float(text)
    except ValueError:
        raise refusals.malformed("query.timeout", "a number is wanted") from None
    if math.isnan(value) or value < 0:
        raise refusals.malformed("query.timeout", "a number of at least 0 is wanted")


def _say(exchange: Exchange, text: str) -> None:
    exchange.respond(Response(200, text.encode(), None))


def _well(exchange: Exchange, message: str) -> None:
    exchange.respond(fastapi.document({"message": message, "status": "ok"}))
