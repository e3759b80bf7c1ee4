"""The settings of each policy: all are scenarios, none is a fixed count in disguise."""

import pytest

from modelserve import errors
from servelab.sim import reading, running
from servelab.sweep import families, settings

TOLERANCE = "scaling.tolerance"


def test_each_policy_has_the_scenarios_own_settings_at_each_floor(
    document: reading.Document,
) -> None:
    found = families.points(document, "hpa", seeds=2)
    assert [dict(p.values) for p in found[:4:2]] == [
        {"scaling.minReplicas": 0},
        {"scaling.minReplicas": 1},
    ]
    assert [p.seed for p in found[:4]] == [5, 6, 5, 6]


@pytest.mark.parametrize("policy", running.policies())
def test_nobody_is_held_to_its_fewest_replicas(document: reading.Document, policy: str) -> None:
    for point in families.points(document, policy):
        least = point.values.get("scaling.minReplicas", 0)
        assert least < point.content["models"][0]["spec"]["scaling"]["maxReplicas"]


def test_fixed_counts_go_as_far_as_the_scenario(document: reading.Document) -> None:
    found = families.points(document, families.FIXED, (0, 1, 2, 3, 9))
    assert [point.policy for point in found] == ["fixed-1", "fixed-2", "fixed-3"]


def test_others_have_no_field_that_is_only_ours(document: reading.Document) -> None:
    assert any(TOLERANCE in p.values for p in families.points(document, "committed"))
    assert not any(TOLERANCE in p.values for p in families.points(document, "knative"))


@pytest.mark.parametrize(
    ("policy", "several"),
    [("committed", True), ("queue-depth", True), ("knative", True), ("hpa", False)],
)
def test_who_has_a_setting_for_a_wake_with_several_turns_it(
    document: reading.Document, policy: str, several: bool
) -> None:
    found = families.points(document, policy)
    assert any("scaling.activationReplicas" in each.values for each in found) is several


@pytest.mark.parametrize("policy", ["oracle", "fixed-2"])
def test_what_has_nothing_to_set_is_one_point(document: reading.Document, policy: str) -> None:
    assert [each.policy for each in families.points(document, policy)] == [policy]


def test_a_floor_that_the_scenario_has_is_one_of_them(document: reading.Document) -> None:
    content = settings.applied(document.content, (*families.SCALING, "maxReplicas"), 9)
    content = settings.applied(content, (*families.SCALING, "minReplicas"), 7)
    own = reading.Document(document.name, content, document.lines)
    floors = {each.values["scaling.minReplicas"] for each in families.points(own, "keda")}
    assert floors == {0, 1, 2, 3, 4, 7}


def test_a_scenario_of_several_models_is_refused(document: reading.Document) -> None:
    model = document.content["models"][0]
    twice = {**document.content, "models": [model, {**model, "name": "other"}]}
    with pytest.raises(errors.InputError, match="2 models"):
        families.points(reading.Document("two.yaml", twice, {}), "hpa")


def test_an_oracle_is_left_out_where_it_cannot_know_the_traffic(
    document: reading.Document,
) -> None:
    loop = [{"closed": {"clients": 1, "seconds": 9}}]
    content = settings.applied(document.content, ("models", 0, "traffic"), loop)
    closed = reading.validate(reading.Document("loop.yaml", content, {}))
    assert "oracle" not in families.names(closed)
    assert families.names(reading.validate(document)) == list(running.policies())
