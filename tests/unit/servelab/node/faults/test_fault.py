"""Which faults befall whom, and when they hold."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve import errors
from modelserve.api import faults as api
from modelserve.api.faults import FaultType as Type
from servelab.node.faults import fault, words

T0 = 1_800_000_000.0


def target(key: str = "uid", *, is_pod: bool = True, scale: float = 1.0) -> fault.Target:
    return fault.Target(key, "n-0", T0, scale, is_pod=is_pod)


def one(scale: float = 1.0, **said: Any) -> fault.Faults:
    """What befalls a pod of that."""
    return fault.resolve([api.Fault.model_validate(said)], target(scale=scale))


def test_it_holds_from_its_moment_for_its_time() -> None:
    found = one(type="CrashLoop", afterSeconds=10, durationSeconds=5)
    held = [found.holding(Type.CRASH_LOOP, T0 + at) is not None for at in (9, 10, 14.9, 15)]
    assert held == [False, True, True, False]


def test_durations_are_of_emulated_time() -> None:
    found = one(scale=10, type="CrashLoop", afterSeconds=10, durationSeconds=50)
    assert (found.entries[0].start_s, found.entries[0].end_s) == (T0 + 1, T0 + 6)


def test_a_time_of_day_counts_instead_of_the_beginning() -> None:
    found = one(type="CrashLoop", at="2027-01-15T08:00:30Z", afterSeconds=2)
    assert found.entries[0].start_s == T0 + 32


def test_changes_come_in_order() -> None:
    said = [
        api.Fault.model_validate({"type": "CrashLoop", "afterSeconds": a, "durationSeconds": 4})
        for a in (3, 1)
    ]
    found, moments, at = fault.resolve(said, target()), [], T0
    while (at := found.next_change_s(at)) < fault.NEVER:
        moments.append(at - T0)
    assert moments == [1, 3, 5, 7]


def test_faults_of_nodes_befall_nodes_and_others_pods() -> None:
    said = [api.Fault(type=kind) for kind in Type]
    of_pod = {each.type for each in fault.resolve(said, target()).entries}
    of_node = {each.type for each in fault.resolve(said, target(is_pod=False)).entries}
    # A pod feels that its node is lost, and a node one of its GPUs.
    assert of_pod & of_node == {Type.NODE_LOST, Type.XID}
    assert of_pod | of_node == set(Type)


def test_other_nodes_are_spared() -> None:
    assert not one(type="CrashLoop", nodes=["n-1"]).entries
    assert one(type="CrashLoop", nodes=["n-1", "n-0"]).entries


@settings(deadline=None, max_examples=30)
@given(share=st.floats(0, 1), seed=st.integers(0, 5))
def test_chance_befalls_its_share_the_same_each_time(share: float, seed: int) -> None:
    said = [api.Fault(type=Type.CRASH_LOOP, probability=share, seed=seed)]

    def struck() -> list[int]:
        return [n for n in range(400) if fault.resolve(said, target(f"uid-{n}")).entries]

    assert struck() == struck()
    assert abs(len(struck()) / 400 - share) < 0.12


def test_another_seed_strikes_others() -> None:
    def struck(seed: int) -> set[int]:
        said = [api.Fault(type=Type.XID, probability=0.5, seed=seed)]
        return {n for n in range(100) if fault.resolve(said, target(f"uid-{n}")).entries}

    assert struck(1) != struck(2)


def test_an_annotation_reads_back_as_written() -> None:
    said = (api.Fault(type=Type.SLOW_ENGINE, factor=4, name="a"), api.Fault(type=Type.XID, xid=31))
    assert api.parse(api.render(said), "pod a/b") == said


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is no JSON"),
        ("{}", "must be a list"),
        ('[{"type":"Xid"}]', "item 0: type: Input should be 'ImagePullError'"),
        ('[{"type":"XID","facto":3}]', "item 0: facto: Extra inputs are not permitted"),
        ('[{"type":"XID","factor":3}]', "factor acts only in faults of type SlowRegistry or"),
        ('[{"type":"XID","at":"soon"}]', "at must be a time in RFC 3339"),
        ('[{"type":"XID","probability":2}]', "probability: Input should be less than"),
    ],
)
def test_what_cannot_be_is_told_with_its_place(text: str, told: str) -> None:
    with pytest.raises(errors.InputError) as caught:
        api.parse(text, "pod a/b")
    assert told in str(caught.value)
    assert str(caught.value).startswith("annotation emulator.modelserve.dev/faults of pod a/b")


def test_only_some_xids_take_the_gpu_away() -> None:
    assert [words.breaks_gpu(number) for number in (31, 79, 94)] == [False, True, True]
