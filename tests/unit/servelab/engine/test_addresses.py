"""Addresses to listen on."""

import socket

import pytest

from modelserve import errors
from servelab.engine import addresses


def test_a_bound_socket_refuses_connections_until_it_listens() -> None:
    with addresses.bound("127.0.0.1", 0, "") as sock, pytest.raises(ConnectionRefusedError):
        socket.create_connection(sock.getsockname())


def test_an_address_that_cannot_be_had_says_what_to_change() -> None:
    with pytest.raises(errors.SetUpError, match=r"Cannot assign .*; choose another with --port$"):
        addresses.bound("192.0.2.1", 80, "--port")


def test_a_host_that_is_unknown_is_told() -> None:
    with pytest.raises(errors.SetUpError, match=r"cannot listen on no\.invalid:80: .+; choose"):
        addresses.bound("no.invalid", 80, "--port")


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [("127.0.0.1", "127.0.0.1", True), ("0.0.0.0", "10.0.0.1", True), ("10.0.0.1", "::1", False)],
)
def test_all_addresses_of_a_machine_overlap_with_each(one: str, other: str, both: bool) -> None:
    assert addresses.overlap(one, other) == addresses.overlap(other, one) == both
