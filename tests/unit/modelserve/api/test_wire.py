"""The contracts read back what they write."""

from hypothesis import given
from hypothesis import strategies as st

from modelserve.api import wire

_demands = st.builds(
    wire.ModelDemand,
    namespace=st.text(min_size=1),
    name=st.text(min_size=1),
    held=st.integers(0, 10**6),
    in_flight=st.dictionaries(st.text(min_size=1), st.integers(0, 100)),
    admitted=st.lists(st.text(), max_size=3).map(tuple),
)


@given(st.lists(_demands, max_size=3))
def test_a_snapshot_is_read_back(models: list[wire.ModelDemand]) -> None:
    snapshot = wire.DemandSnapshot("gw-0", "e1", 7, tuple(models))
    assert wire.DemandSnapshot.parse(snapshot.to_json()) == snapshot


def test_unknown_fields_of_a_newer_gateway_are_left_aside() -> None:
    assert wire.ModelDemand.parse({"namespace": "a", "name": "b", "new": 1}).held == 0


def test_fence_request_answer_and_share_are_read_back() -> None:
    request = wire.FenceRequest("a", "b", "f1", ("u1", "u2"))
    answer = wire.FenceAnswer(False, 1, 2)
    share = wire.Share("a", "b", 40)
    assert wire.FenceRequest.parse(request.to_json()) == request
    assert wire.FenceAnswer.parse(answer.to_json()) == answer
    assert wire.Share.parse(share.to_json()) == share


def test_phase_stamps_give_emulated_seconds_of_ended_phases_only() -> None:
    stamps = wire.PhaseStamps(
        10.0,
        (
            wire.PhaseStamp(wire.Phase.IMAGE_PULL, 1_000, 3_000, 20_000),
            wire.PhaseStamp(wire.Phase.WEIGHT_LOAD, 3_000),
        ),
    )
    assert wire.PhaseStamps.parse(stamps.to_json()) == stamps
    assert stamps.emulated_s(wire.Phase.IMAGE_PULL) == 20.0
    assert stamps.emulated_s(wire.Phase.WEIGHT_LOAD) == 0.0
