"""One attempt at one engine: send the request, wait for the first bytes of its answer.

Bytes pass as they come: nothing is parsed, decompressed or framed anew, and a slow client slows
its engine down, through the buffers' limits.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from multidict import CIMultiDict, CIMultiDictProxy

from modelserve import errors
from modelserve.decide import fleet
from modelserve.gateway import calls

CONNECT_REAL_S = 3.0
# Engines on uvicorn close idle connections after 5 s; to send on one just then costs a retry.
IDLE_REAL_S = 4.0
# From this size on aiohttp wants a body as a file, so that it is written in pieces.
_LARGE_BYTES = 2**20

# The last: aiohttp's word for reading on a connection that is gone.
_BROKEN = (aiohttp.ClientError, OSError, RuntimeError)

# RFC 9110, 7.6.1, and what each hop works out for itself.
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# A compressed body has been unpacked by then.
_NOT_FORWARDED = _HOP_BY_HOP | {"host", "content-length", "content-encoding", "expect"}
# A header that the client left out stays out.
_NOT_ADDED = frozenset({"Accept", "Accept-Encoding", "Content-Type", "User-Agent"})


class Refused(errors.ModelServeError):
    """The engine accepted no connection: it never saw the request."""


class Reset(errors.ModelServeError):
    """The connection broke before the first byte of an answer."""


class BrokenOff(errors.ModelServeError):
    """The engine went away in the middle of its answer."""


@dataclass(slots=True)
class Upstream:
    """An answer that has begun; ``first`` are its first bytes, empty if it has no body."""

    response: aiohttp.ClientResponse
    first: bytes

    async def next(self) -> bytes:
        """More of it, as much as is there; empty at the end. Raises BrokenOff."""
        try:
            return await self.response.content.readany()
        except _BROKEN as error:
            raise BrokenOff(str(error)) from error

    def close(self) -> None:
        """Let go. Before its end this closes the connection, and the engine stops its work."""
        self.response.close()


def open_session() -> aiohttp.ClientSession:
    """The pool of connections to engines: no limit (the holds have it), no limit of time."""
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=0, keepalive_timeout=IDLE_REAL_S)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_REAL_S),
        auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar(),
        skip_auto_headers=_NOT_ADDED,
        trust_env=False,
    )


async def send(
    session: aiohttp.ClientSession,
    replica: fleet.Replica,
    call: calls.Call,
    headers: Mapping[str, str],
) -> Upstream:
    """Send it and wait for the first bytes. Raises Refused or Reset."""
    body = io.BytesIO(call.body) if len(call.body) >= _LARGE_BYTES else call.body
    url = f"http://{replica.address}{call.path}"
    try:
        response = await session.post(url, data=body, headers=headers, allow_redirects=False)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise Refused(str(error)) from error
    except (aiohttp.ClientError, OSError) as error:
        raise Reset(str(error)) from error
    try:
        return Upstream(response, await response.content.readany())
    except _BROKEN as error:
        response.close()
        raise Reset(str(error)) from error
    except BaseException:
        # The client has gone: so shall the engine's work for it.
        response.close()
        raise


def forwarded(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The client's headers that the engine is to see."""
    return _without(headers, _NOT_FORWARDED)


def returned(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """The engine's headers that the client is to see."""
    return _without(headers, _HOP_BY_HOP)


def _without(headers: CIMultiDictProxy[str], dropped: frozenset[str]) -> CIMultiDict[str]:
    named = ",".join(headers.getall("Connection", ())).lower()
    also = {name.strip() for name in named.split(",")}
    kept: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        lower = name.lower()
        if lower not in dropped and lower not in also:
            kept.add(name, value)
    return kept
