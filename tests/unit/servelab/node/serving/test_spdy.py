"""SPDY frames: read as they were written, in whatever pieces they come."""

import contextlib
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.node.serving import dictionary, spdy

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=12)
HEADERS = st.dictionaries(NAMES, st.text(max_size=30).filter(lambda t: "\ud800" not in t))


def test_the_dictionary_is_the_one_that_all_use() -> None:
    # The identifier that zlib writes into every SPDY/3 stream.
    assert zlib.adler32(dictionary.HEADERS) == 0xE3C6A7C2


@given(st.lists(HEADERS, max_size=5), st.integers(1, 40))
def test_frames_come_out_as_they_went_in(blocks: list[dict[str, str]], piece: int) -> None:
    writer, reader = spdy.Writer(), spdy.Reader()
    opened = [spdy.Opened(2 * n + 1, headers) for n, headers in enumerate(blocks)]
    sent = b"".join(writer.open(each.stream, each.headers) for each in opened)
    sent += spdy.data(1, b"abc", fin=True) + spdy.ping(7) + spdy.reset(3) + spdy.go_away(9)
    pieces = (sent[at : at + piece] for at in range(0, len(sent), piece))
    found = [frame for each in pieces for frame in reader.feed(each)]
    rest = [spdy.Data(1, b"abc", True), spdy.Ping(7), spdy.Broken(3), spdy.GoAway()]
    assert found == [*opened, *rest]


@given(st.binary(max_size=200))
def test_rubbish_is_refused_and_nothing_else_happens(rubbish: bytes) -> None:
    reader = spdy.Reader()
    with contextlib.suppress(spdy.ProtocolError):
        list(reader.feed(rubbish))


def test_another_version_is_not_spoken() -> None:
    frame = bytearray(spdy.ping(1))
    frame[1] = 2
    with pytest.raises(spdy.ProtocolError, match="version 2"):
        list(spdy.Reader().feed(bytes(frame)))


def test_headers_that_swell_are_refused() -> None:
    frame = spdy.Writer().open(1, {"a": "x" * (2 << 20)})
    with pytest.raises(spdy.ProtocolError, match="larger than"):
        list(spdy.Reader().feed(frame))


def test_what_a_frame_cannot_hold_goes_into_several() -> None:
    frames = list(spdy.Reader().feed(spdy.data(1, b"x" * (spdy.MOST_FRAME_BYTES + 1), fin=True)))
    assert [(len(f.payload), f.fin) for f in frames if isinstance(f, spdy.Data)] == [
        (spdy.MOST_FRAME_BYTES, False),
        (1, True),
    ]
