"""Counts of HTTP requests as SGLang's middleware keeps them."""

from collections.abc import Callable

from servelab.engine.exchange import Exchange, Handler, Request, Response
from servelab.engine.metrics.series import Shared

Refuse = Callable[[Request, Exception], Response]


class Watched:
    """An exchange whose answer is counted."""

    def __init__(self, exchange: Exchange, http: "Http", path: str) -> None:
        self._exchange = exchange
        self._http = http
        self._path = path
        self._open = True
        self._begun = False

    @property
    def request(self) -> Request:
        """The request."""
        return self._exchange.request

    def respond(self, response: Response) -> None:
        """Send a whole answer."""
        self._told(response.status)
        self._close()
        self._exchange.respond(response)

    def begin(self, response: Response) -> None:
        """Send the head of a streamed answer."""
        self._begun = True
        self._told(response.status)
        self._exchange.begin(response)

    def write(self, data: bytes) -> None:
        """Send a part of a streamed answer."""
        self._exchange.write(data)

    def end(self) -> None:
        """The streamed answer is complete."""
        self._close()
        self._exchange.end()

    def fail(self, error: Exception) -> None:
        """Our own fault."""
        self._close()
        self._exchange.fail(error)

    def raised(self, status: int) -> None:
        """Whoever called the handler answers with this status, if nothing has begun."""
        if not self._begun:
            self._told(status)
        self._close()

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call back if the client goes before the answer is complete."""

        def gone() -> None:
            self._close()
            callback()

        self._exchange.on_gone(gone)

    def later(self, act: Callable[[], None]) -> None:
        """Do this where the engine's state may be touched."""
        self._exchange.later(act)

    def _told(self, status: int) -> None:
        method = self.request.method
        self._exchange.later(lambda: self._http.responded(self._path, method, status))

    def _close(self) -> None:
        if self._open:
            self._open = False
            active = self._http.active.at(endpoint=self._path, method=self.request.method)
            self._exchange.later(lambda: active.add(-1))


class Http:
    """Requests, answers, and how many are under way, by path of the route."""

    def __init__(self) -> None:
        self._requests = Shared(
            "counter", "sglang:http_requests_total", "HTTP requests, by route and method.", {}
        )
        self._responses = Shared(
            "counter", "sglang:http_responses_total", "HTTP answers, by route and status.", {}
        )
        self.active = Shared("gauge", "sglang:http_requests_active", "HTTP requests under way.", {})
        self._keys = Shared(
            "gauge", "sglang:routing_keys_active", "Routing keys of requests under way.", {}
        )
        self._keys.at()

    def counted(self, path: str, handler: Handler, refuse: Refuse) -> Handler:
        """The handler of a route, counted; ``refuse`` is what answers where it raises."""

        def handle(exchange: Exchange) -> None:
            method = exchange.request.method
            exchange.later(lambda: self._arrived(path, method))
            watched = Watched(exchange, self, path)
            try:
                handler(watched)
            except Exception as error:
                watched.raised(refuse(exchange.request, error).status)
                raise

        return handle

    def _arrived(self, path: str, method: str) -> None:
        self._requests.at(endpoint=path, method=method).add(1)
        self.active.at(endpoint=path, method=method).add(1)

    def responded(self, path: str, method: str, status: int) -> None:
        """Count an answer."""
        self._responses.at(endpoint=path, status_code=str(status), method=method).add(1)

    def astray(self, path: str, method: str, status: int) -> None:
        """Count a request that no route took."""
        self._requests.at(endpoint=path, method=method).add(1)
        self.active.at(endpoint=path, method=method)
        self.responded(path, method, status)

    def render(self) -> str:
        """The exposition."""
        families = (self._requests, self._responses, self.active, self._keys)
        return "".join(family.render() for family in families)
