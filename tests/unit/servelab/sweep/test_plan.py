"""A sweep is planned before anything runs: every point is a scenario that can be run."""

import pytest

from modelserve import errors
from servelab.sim import reading
from servelab.sweep import plan, settings


def given(document: reading.Document, *texts: str) -> list[settings.Setting]:
    return [settings.parse(text, document.content) for text in texts]


def test_points_are_all_combinations_in_order(document: reading.Document) -> None:
    fields = given(document, "scaling.minReplicas=0,1", "scaling.bufferReplicas=0,2")
    found = plan.points(document, fields, ["committed", "hpa"], 2)
    assert len(found) == 2 * 2 * 2 * 2
    assert [(*p.values.values(), p.policy, p.seed) for p in found[:5]] == [
        (0, 0, "committed", 5),
        (0, 0, "committed", 6),
        (0, 0, "hpa", 5),
        (0, 0, "hpa", 6),
        (0, 2, "committed", 5),
    ]


def test_without_a_field_there_is_one_point(document: reading.Document) -> None:
    assert len(plan.points(document, [], ["committed"])) == 1


def test_a_key_tells_points_apart_and_knows_them_again(document: reading.Document) -> None:
    fields = given(document, "scaling.minReplicas=0,1")
    keys = [p.key("code") for p in plan.points(document, fields, ["committed", "hpa"], 2)]
    assert len(set(keys)) == 8
    assert keys == [p.key("code") for p in plan.points(document, fields, ["committed", "hpa"], 2)]
    assert plan.points(document, fields, ["committed"])[0].key("other code") not in keys


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        pytest.param(
            ["scaling.minReplicas=0,9"],
            r"^with --set scaling.minReplicas=9: small.yaml, line 6: .*above maxReplicas 4",
            id="crossing",
        ),
        pytest.param(["stepJitter=lots"], "with --set stepJitter=lots", id="type"),
        pytest.param(["stepJitter=0", "stepJitter=0.1"], "is set twice", id="twice"),
        pytest.param(
            ["scaling.scaleDown={}", "scaling.scaleDown.stabilizationWindowSeconds=1"],
            "is set twice",
            id="one within the other",
        ),
    ],
)
def test_a_point_that_is_no_scenario_is_refused(
    document: reading.Document, texts: list[str], complaint: str
) -> None:
    with pytest.raises(errors.InputError, match=complaint):
        plan.points(document, given(document, *texts), ["committed"])


def test_more_points_than_can_be_meant_are_refused(document: reading.Document) -> None:
    with pytest.raises(errors.InputError, match="too many"):
        plan.points(document, given(document, "seed=1,2,3"), ["committed"], 400_000)
