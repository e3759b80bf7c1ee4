"""From an HTTP request to a SPDY connection, or the answer of a kubelet that refuses it.

The connection takes over HTTP's, or goes through a WebSocket.
"""

from collections.abc import Callable, Mapping, Sequence

from aiohttp import web

from servelab.node.serving import connections, tunnelling, websockets

SPDY = "SPDY/3.1"
VERSION_HEADER = "X-Stream-Protocol-Version"
ACCEPTED_HEADER = "X-Accepted-Stream-Protocol-Versions"


def to_spdy(
    request: web.Request,
    spoken: Sequence[str],
    refusal: Callable[[Mapping[str, str]], str] = lambda headers: "",
) -> tuple[connections.Connection, str] | web.Response:
    """Take the connection over; with it the protocol agreed on, one of ``spoken``.

    ``refusal`` says of each stream's headers why it is not taken, if so.
    """
    if "upgrade" not in request.headers.get("Connection", "").lower():
        return _refused(500, "Upgrade request required")
    values = request.headers.getall(VERSION_HEADER, [])
    offered = [part.strip() for value in values for part in value.split(",") if part.strip()]
    if not offered:
        return _refused(
            400,
            f"unable to upgrade: header {VERSION_HEADER} does not exist in request "
            f"with {len(request.headers)} headers",
        )
    chosen = _agreed(offered, spoken)
    if isinstance(chosen, web.Response):
        return chosen
    if SPDY.lower() not in request.headers.get("Upgrade", "").lower():
        return _refused(400, "unable to upgrade: missing upgrade headers in request")
    transport = request.transport
    if transport is None:
        return _refused(500, "unable to upgrade: the connection is gone")
    head = (
        "HTTP/1.1 101 Switching Protocols\r\n"
        f"Connection: Upgrade\r\nUpgrade: {SPDY}\r\n{VERSION_HEADER}: {chosen}\r\n\r\n"
    )
    found = connections.Connection(refusal, request.protocol)
    found.attach(transport)
    transport.set_protocol(found)
    transport.write(head.encode())
    return found, chosen


async def to_tunnel(
    request: web.Request, spoken: Sequence[str]
) -> web.WebSocketResponse | web.Response:
    """The WebSocket of a client that wants SPDY through it, with one of those protocols."""
    chosen = _agreed(tunnelling.protocols(request), spoken)
    if isinstance(chosen, web.Response):
        return chosen
    return await websockets.opened(request, (f"{tunnelling.PREFIX}{chosen}",))


def _agreed(offered: Sequence[str], spoken: Sequence[str]) -> str | web.Response:
    chosen = next((each for each in offered if each in spoken), "")
    if chosen:
        return chosen
    answer = _refused(
        403,
        "unable to upgrade: unable to negotiate protocol: "
        f"client supports [{' '.join(offered)}], server accepts [{' '.join(spoken)}]",
    )
    for each in spoken:
        answer.headers.add(ACCEPTED_HEADER, each)
    return answer


def _refused(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=f"{text}\n")
