"""A gateway's share of each replica's slots: dealt, awaited, and not dealt by anybody."""

from modelserve.decide import fleet, holding

TERMS = holding.Terms(slots=4)
READY = fleet.Replica("a", ready=True, address="h:1")


def sent(effects: object) -> list[int]:
    assert isinstance(effects, list | tuple)
    return [each.request_id for each in effects if isinstance(each, holding.Send)]


def started(n_requests: int) -> holding.Holding:
    """One that has just started, waits for its share until 3 s, and got these requests."""
    made = holding.Holding(TERMS, share_due_real_s=3.0)
    made.update(TERMS, [READY], 0.0)
    for number in range(n_requests):
        made.arrive(number, 1, 0.0)
    return made


def test_a_gateway_that_waits_for_its_share_sends_one_at_a_time() -> None:
    model = started(9)
    assert (model.in_flight, model.held) == (1, 8)
    assert sent(model.complete(0, 1.0)) == [1]


def test_its_share_counts_as_soon_as_it_comes() -> None:
    model = started(9)
    assert sent(model.set_share(3, 0.1)) == [1, 2]
    assert sent(model.advance(4.0)) == []


def test_without_anybody_who_deals_it_takes_all_there_is() -> None:
    model = started(9)
    assert model.next_wake() == 3.0
    assert sent(model.advance(3.0)) == [1, 2, 3, 4]
