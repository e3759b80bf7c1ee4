"""The loopback address, and free ports on it."""

import contextlib
import socket
from collections.abc import Sequence

from modelserve import errors

ADDRESS = "127.0.0.1"


def free_ports(count: int) -> Sequence[int]:
    """``count`` different ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((ADDRESS, 0))
        return [one.getsockname()[1] for one in sockets]


def require_free_port(port: int, purpose: str) -> int:
    """``port`` itself. SetUpError if somebody has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as failure:
            raise errors.SetUpError(
                f"port {port} for {purpose} is taken ({failure.strerror}): choose another one, "
                "or leave it out and a free one is found"
            ) from failure
    return port
