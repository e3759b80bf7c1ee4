"""Chunked bodies are unwrapped wherever the network cuts them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.trial import framing


def framed(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces if p) + b"0\r\n\r\n"


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 9))
def test_content_survives_any_cut(pieces: list[bytes], size: int) -> None:
    body, data = framing.ChunkedBody(), framed(pieces)
    got = b"".join(body.feed(data[at : at + size]) for at in range(0, len(data), size))
    assert (got, body.ended) == (b"".join(pieces), True)


def test_extensions_and_trailers_are_no_content() -> None:
    body = framing.ChunkedBody()
    assert body.feed(b"3;a=b\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n") == b"abc"
    assert body.ended


def test_a_size_that_is_no_number_is_an_error() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        framing.ChunkedBody().feed(b"zz\r\n")
