"""A kubelet lets 25 events out at once, of each type, then one every five minutes."""

from servelab.node.rules import spam


def test_a_burst_is_let_out_and_no_more() -> None:
    found = spam.Filter()
    assert [found.lets("u", "Normal", 0.0) for _ in range(26)] == [True] * 25 + [False]


def test_types_and_objects_have_their_own() -> None:
    found = spam.Filter()
    for _ in range(25):
        found.lets("u", "Normal", 0.0)
    assert found.lets("u", "Warning", 0.0)
    assert found.lets("v", "Normal", 0.0)


def test_one_comes_back_in_five_minutes() -> None:
    found = spam.Filter()
    for _ in range(25):
        found.lets("u", "Normal", 0.0)
    assert [found.lets("u", "Normal", at) for at in (299.0, 300.5, 301.0)] == [False, True, False]


def test_what_is_gone_is_forgotten() -> None:
    found = spam.Filter()
    for _ in range(25):
        found.lets("u", "Normal", 0.0)
    found.forget("u")
    assert found == spam.Filter()
