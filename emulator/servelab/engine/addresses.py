"""Addresses to listen on: how one is had, and what is said where it cannot be."""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator

from modelserve import errors

_EVERYWHERE = frozenset({"0.0.0.0", "::", ""})


def bound(host: str, port: int, flags: str) -> socket.socket:
    """A socket with an address; connections are refused until it listens.

    ``flags`` are those that choose another. Raises SetUpError.
    """
    sock: socket.socket | None = None
    try:
        with claimed(host, port, flags):
            family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            sock = socket.socket(family)
            # A port chosen by hand may still be in TIME_WAIT from the run before.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
    except errors.SetUpError:
        if sock is not None:
            sock.close()
        raise
    sock.setblocking(False)
    return sock


@contextlib.contextmanager
def claimed(host: str, port: int, flags: str, what: str = "") -> Iterator[None]:
    """While ``what`` binds or listens there. Raises SetUpError for an OSError inside."""
    try:
        yield
    except OSError as error:
        who = f"{what} cannot" if what else "cannot"
        raise errors.SetUpError(
            f"{who} listen on {joined(host, port)}: {_reason(error, port)}; "
            f"choose another with {flags}"
        ) from error


def joined(host: str, port: int) -> str:
    """Host and port as a URL has them."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def overlap(host: str, other: str) -> bool:
    """Whether two sockets cannot both listen on the same port of these hosts."""
    return host == other or bool(_EVERYWHERE & {host, other})


def _reason(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"something listens there already (`lsof -i :{port}` tells what)"
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror or str(error)
    return os.strerror(error.errno)
