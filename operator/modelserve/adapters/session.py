"""HTTP to the API server over the official client's session: TLS, proxies, kept connections.

Requests go to aiohttp's session itself: the client's own way there takes a third of a write's time.
"""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import yarl
from kubernetes.aio.client import rest

from modelserve.adapters import failures

# kube-apiserver closes what was idle for 90 s.
KEEP_REAL_S = 75.0
CONNECTION_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class Session(rest.RESTClientObject):
    """Connections by the client's configuration. They are kept: a wake must not wait for one."""

    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: object,
        limits: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        """``url`` is quoted already; a body goes as JSON. Raises what aiohttp does."""
        if self.pool_manager is None:
            self.pool_manager = self._create_pool_manager()
        content = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        return await self.pool_manager.request(
            method,
            yarl.URL(url, encoded=True),
            headers=headers,
            data=content,
            timeout=limits,
            **self._route(),
        )

    def _route(self) -> dict[str, Any]:
        """What the kubeconfig says of the way there."""
        found = {
            "server_hostname": self.configuration.tls_server_name,
            "proxy": self.proxy,
            "proxy_headers": self.proxy_headers,
        }
        return {key: value for key, value in found.items() if value}

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            limit=self.maxsize, ssl=self.ssl_context, keepalive_timeout=KEEP_REAL_S
        )


def abort(response: aiohttp.ClientResponse) -> None:
    """Close a stream of which nothing more is wanted, without the farewell of TLS.

    That would go on in the background and outlive the session, and perhaps the event loop.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def lines(response: aiohttp.ClientResponse, what: str) -> AsyncIterator[bytes]:
    """Of a stream, to its end. Raises Unavailable when it is cut."""
    try:
        while line := await response.content.readline():
            yield line
    except (*CONNECTION_ERRORS, ValueError) as error:
        raise failures.from_exception(what, error) from error
