"""Slices of the processor, of a thread that the test throws away."""

import threading

import pytest

from servelab.engine.httpd import slices


def test_a_thread_that_asks_has_short_slices_and_others_keep_theirs() -> None:
    before, seen = slices.slice_ns(), []
    if not before:
        pytest.skip("this system does not tell of slices")

    def ask() -> None:
        slices.shorten()
        seen.append(slices.slice_ns())

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert (seen, slices.slice_ns()) == ([slices.SLICE_NS], before)
