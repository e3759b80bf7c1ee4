"""From snapshots of several gateways to one signal."""

from modelserve.api import wire
from modelserve.decide import counters


def snapshot(gateway: str, epoch: str = "1", **fields: object) -> wire.DemandSnapshot:
    model = wire.ModelDemand("default", "llama", **fields)  # type: ignore[arg-type]
    return wire.DemandSnapshot(gateway, epoch, 1, (model,))


def merge(
    past: counters.Counters, *snapshots: wire.DemandSnapshot
) -> tuple[counters.Merged, counters.Counters]:
    return counters.merge(snapshots, "default", "llama", past)


def test_gateways_add_up() -> None:
    one = snapshot("a", held=2, in_flight={"p": 3}, admitted=("p",), oldest_held_s=4.0)
    two = snapshot("b", held=1, in_flight={"p": 1, "q": 2}, refused_recently=5)
    merged, _ = merge(counters.Counters(), one, two)
    signal = merged.signal
    assert (signal.live_gateways, signal.held, signal.refused_recently) == (2, 3, 5)
    assert merged.in_flight == {"p": 4, "q": 2}
    assert merged.admitted == {"p"}
    assert signal.oldest_held_s == 4.0


def test_what_was_counted_before_the_first_look_did_not_arrive_now() -> None:
    merged, past = merge(counters.Counters(), snapshot("a", arrivals=1000, completions=990))
    assert (merged.signal.arrivals, merged.signal.completions) == (0, 0)
    merged, _ = merge(past, snapshot("a", arrivals=1004, completions=991, service_sum_s=2.5))
    assert (merged.signal.arrivals, merged.signal.completions) == (4, 1)


def test_a_model_seen_for_the_first_time_counts_from_zero() -> None:
    _, past = merge(counters.Counters(), wire.DemandSnapshot("a", "1", 1, ()))
    assert merge(past, snapshot("a", arrivals=3))[0].signal.arrivals == 3


def test_a_restarted_gateway_counts_from_zero_again() -> None:
    _, past = merge(counters.Counters(), snapshot("a", arrivals=100))
    merged, past = merge(past, snapshot("a", epoch="2", arrivals=2))
    assert merged.signal.arrivals == 2
    assert merge(past, snapshot("a", epoch="2", arrivals=2))[0].signal.arrivals == 0


def test_gateways_long_out_of_sight_are_forgotten() -> None:
    past = counters.Counters()
    for epoch in range(300):
        _, past = merge(past, snapshot("a", epoch=str(epoch), arrivals=1))
    assert len(past.seen) < 260


def test_a_gateway_that_comes_back_into_sight_is_taken_up_where_it_was() -> None:
    _, past = merge(counters.Counters(), snapshot("a", arrivals=100))
    gone, past = merge(past)
    assert gone.signal.live_gateways == 0
    assert merge(past, snapshot("a", arrivals=101))[0].signal.arrivals == 1
