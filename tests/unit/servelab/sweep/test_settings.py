"""Fields are named from the top or in short, and set without touching anything else."""

from typing import Any

import pytest

from modelserve import errors
from servelab.sweep import settings

CONTENT: dict[str, Any] = {
    "pools": [{"name": "h100", "gpu": "H100"}],
    "models": [{"name": "llama", "spec": {"scaling": {"maxReplicas": 4}}, "traffic": [{}]}],
}


@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(
            "scaling.minReplicas", ("models", 0, "spec", "scaling", "minReplicas"), id="short"
        ),
        pytest.param(
            "models.llama.spec.gpu.product", ("models", 0, "spec", "gpu", "product"), id="by name"
        ),
        pytest.param("pools.0.nodes", ("pools", 0, "nodes"), id="by number"),
        pytest.param("stepJitter", ("stepJitter",), id="top"),
        pytest.param(
            "models.llama.traffic.0.poisson.perSecond",
            ("models", 0, "traffic", 0, "poisson", "perSecond"),
            id="traffic",
        ),
    ],
)
def test_a_field_is_found(name: str, place: tuple[object, ...]) -> None:
    assert settings.parse(f"{name}=1", CONTENT).place == place


def test_values_are_yaml() -> None:
    given = settings.parse("scaling.policy=Committed, null, 1.5, [1, 2], {a: 1}", CONTENT)
    assert list(given.values) == ["Committed", None, 1.5, [1, 2], {"a": 1}]


def test_values_are_read_as_in_a_scenario() -> None:
    assert settings.parse("gpuHourPrice=1e3,null", {}).values == (1000.0, None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("scaling.minReplicas", "write FIELD=VALUE", id="no value"),
        pytest.param("scaling.minReplicas=", "write FIELD=VALUE", id="an empty value"),
        pytest.param("scaling.minReplicas=[", "cannot be read as YAML", id="yaml"),
        pytest.param("scaling.minReplica=1", "did you mean minReplicas", id="mistyped"),
        pytest.param("models.lama.spec.replicas=1", "there are llama", id="no such model"),
        pytest.param("models.0=1", "names a whole model", id="a model"),
        pytest.param("policy=hpa", "with --policies", id="policy"),
        pytest.param("nonsense=1", "no such field", id="nonsense"),
    ],
)
def test_what_is_no_setting_is_told(text: str, complaint: str) -> None:
    with pytest.raises(errors.InputError, match=complaint):
        settings.parse(text, CONTENT)


def test_a_short_name_needs_a_single_model() -> None:
    two = {**CONTENT, "models": CONTENT["models"] * 2}
    with pytest.raises(errors.InputError, match=r"there are 2 models; write models.NAME.spec"):
        settings.parse("scaling.minReplicas=1", two)


def test_setting_a_field_leaves_the_original_alone() -> None:
    place = ("models", 0, "spec", "scaling", "scaleDown", "stabilizationWindowSeconds")
    changed = settings.applied(CONTENT, place, 30)
    assert changed["models"][0]["spec"]["scaling"] == {
        "maxReplicas": 4,
        "scaleDown": {"stabilizationWindowSeconds": 30},
    }
    assert CONTENT["models"][0]["spec"]["scaling"] == {"maxReplicas": 4}


def test_a_mapping_takes_the_place_of_a_number() -> None:
    assert settings.applied({"input": 512}, ("input", "median"), 9) == {"input": {"median": 9}}
