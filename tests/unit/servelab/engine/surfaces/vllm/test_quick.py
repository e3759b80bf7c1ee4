"""The short way through a chat request's checks ends where the long one does."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.engine.calls import Served
from servelab.engine.surfaces.vllm import protocol, quick

SERVED = Served("m", 64)
PLAIN: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}

odd: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, False, 0, 1, -1, 2.5, 1e300, 10**30, "", "m", "x", [], {}]
)
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "assistant", "tool", "", 1])},
        optional={
            "content": st.text(max_size=20) | st.none() | st.just([{"type": "text", "text": "a"}]),
            "name": st.just("x"),
        },
    ),
    max_size=3,
)
options = st.dictionaries(
    st.sampled_from(["include_usage", "continuous_usage_stats", "x"]),
    st.booleans() | odd,
    max_size=2,
)
bodies = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just("m") | odd,
        "messages": messages | odd,
        "max_tokens": st.integers(-2, 70) | odd,
        "max_completion_tokens": st.integers(-2, 70) | odd,
        "stream": st.booleans() | odd,
        "stream_options": options | odd,
        "temperature": st.floats(-1, 3) | odd,
        "top_p": st.floats(-1, 2) | odd,
        "ignore_eos": st.booleans() | odd,
        "n": odd,
        "stop": odd,
        "seed": odd,
    },
)


@given(bodies)
def test_what_the_short_way_takes_the_long_one_takes_alike(body: dict[str, Any]) -> None:
    raw = json.dumps(body).encode()
    taken = quick.chat(raw, "application/json", SERVED)
    assert taken is None or taken == protocol.parse_any_chat(raw, "application/json", SERVED)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"max_tokens": 3, "temperature": 0.7, "top_p": 0.9},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"max_completion_tokens": 3, "ignore_eos": True},
    ],
)
def test_what_load_generators_send_goes_the_short_way(more: dict[str, Any]) -> None:
    raw = json.dumps(PLAIN | more).encode()
    assert quick.chat(raw, "application/json", SERVED) is not None


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"\xff", b"null", b"[" * 10_000, b'{"model": "\\ud800"}']
)
def test_what_is_no_plain_object_goes_the_long_way(raw: bytes) -> None:
    assert quick.chat(raw, "application/json", SERVED) is None
