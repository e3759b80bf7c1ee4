"""From an HTTP request to a SPDY connection, or the answer of a kubelet that refuses it."""

from collections.abc import Callable, Mapping, Sequence

from aiohttp import web

from servelab.node.serving import connections

SPDY = "SPDY/3.1"
VERSION_HEADER = "X-Stream-Protocol-Version"
ACCEPTED_HEADER = "X-Accepted-Stream-Protocol-Versions"


def is_websocket(request: web.Request) -> bool:
    """Whether a WebSocket is asked for."""
    connection = request.headers.get("Connection", "").lower()
    return "upgrade" in connection and request.headers.get("Upgrade", "").lower() == "websocket"


def to_spdy(
    request: web.Request,
    spoken: Sequence[str],
    refusal: Callable[[Mapping[str, str]], str] = lambda headers: "",
) -> tuple[connections.Connection, str] | web.Response:
    """Take the connection over; with it the protocol agreed on, one of ``spoken``.

    ``refusal`` says of each stream's headers why it is not taken, if so.
    """
    values = request.headers.getall(VERSION_HEADER, [])
    offered = [part.strip() for value in values for part in value.split(",") if part.strip()]
    if not offered:
        return _refused(
            400,
            f"unable to upgrade: header {VERSION_HEADER} does not exist in request "
            f"with {len(request.headers)} headers",
        )
    chosen = next((each for each in offered if each in spoken), "")
    if not chosen:
        answer = _refused(
            403,
            "unable to upgrade: unable to negotiate protocol: "
            f"client supports [{' '.join(offered)}], server accepts [{' '.join(spoken)}]",
        )
        for each in spoken:
            answer.headers.add(ACCEPTED_HEADER, each)
        return answer
    connection = request.headers.get("Connection", "").lower()
    asked = request.headers.get("Upgrade", "").lower()
    if "upgrade" not in connection or SPDY.lower() not in asked:
        return _refused(400, "unable to upgrade: missing upgrade headers in request")
    transport = request.transport
    if transport is None:
        return _refused(500, "unable to upgrade: the connection is gone")
    head = (
        "HTTP/1.1 101 Switching Protocols\r\n"
        f"Connection: Upgrade\r\nUpgrade: {SPDY}\r\n{VERSION_HEADER}: {chosen}\r\n\r\n"
    )
    found = connections.Connection(request.protocol, refusal)
    found.take_over(transport)
    transport.write(head.encode())
    return found, chosen


def _refused(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")
