"""The log and the sockets of a process with engines."""

import socket

import pytest

from modelserve import errors
from servelab.engine.alone import running


async def test_lines_that_come_together_are_written_together() -> None:
    written: list[str] = []
    lines = running.Lines(written.append)
    lines.add("one")
    lines.add("two")
    assert written == []
    lines.flush()
    lines.flush()
    assert written == ["one\ntwo\n"]


async def test_a_log_that_nobody_reads_stops_nothing() -> None:
    def closed(text: str) -> None:
        raise BrokenPipeError

    lines = running.Lines(closed)
    lines.add("one")
    lines.flush()


def test_a_bound_socket_refuses_connections_until_it_listens() -> None:
    with running.bound("127.0.0.1", 0) as sock, pytest.raises(ConnectionRefusedError):
        socket.create_connection(sock.getsockname())


def test_an_address_that_cannot_be_had_says_what_to_change() -> None:
    with pytest.raises(errors.SetUpError, match="choose another with --port or --host"):
        running.bound("192.0.2.1", 80)
