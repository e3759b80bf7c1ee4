"""Back-offs double, end at five minutes, and are forgotten."""

from servelab.node.kubelet import backoffs


def test_delays_double_up_to_five_minutes() -> None:
    found = backoffs.Backoff()
    delays = []
    for number in range(7):
        found.failed("a", number, number)
        delays.append(found.delay_real_s("a"))
    assert delays == [10, 20, 40, 80, 160, 300, 300]


def test_it_holds_from_the_event_not_from_the_failure() -> None:
    found = backoffs.Backoff()
    found.failed("a", 0, 5)
    assert found.holds_since("a", 10, 19.9)
    assert not found.holds_since("a", 10, 20)
    assert found.holds_since_update("a", 14.9)


def test_after_ten_minutes_it_begins_anew() -> None:
    found = backoffs.Backoff()
    for at in (0, 1, 2):
        found.failed("a", at, at)
    assert not found.holds_since("a", 603, 604)
    found.failed("a", 603, 603)
    assert found.delay_real_s("a") == 10


def test_keys_are_apart() -> None:
    found = backoffs.Backoff()
    found.failed("a", 0, 0)
    assert not found.holds_since("b", 0, 1)
