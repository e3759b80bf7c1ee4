"""A scenario that makes no sense is refused with its line and what to mend."""

import pytest

from modelserve import errors
from servelab.sim import reading

GOOD = """\
pools:
  - {gpu: NVIDIA-H100-80GB-HBM3, nodes: 2}
models:
  - name: small
    spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
      scaling:
        minReplicas: 0
        maxReplicas: 4
    traffic:
      - poisson: {perSecond: 2, seconds: 60}
"""


def test_the_spec_of_a_model_is_a_modelserves() -> None:
    found = reading.parse(GOOD, "good.yaml")
    assert found.models[0].spec.scaling.max_replicas == 4
    assert found.pools[0].node_count == 2


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        pytest.param("  maxReplicas", "  maxReplica", "line 10: .*no such field", id="nested"),
        pytest.param("traffic:", "trafic:", "line 11: .*trafic: there is no", id="unknown"),
        pytest.param("perSecond: 2", "perSecond: -2", "line 12: .*greater than 0", id="rate"),
        pytest.param("perSecond: 2, ", "", "line 12: .*perSecond: is missing", id="missing"),
        pytest.param("poisson", "gamma", "line 12: .*cv: is missing", id="another law"),
        pytest.param("minReplicas: 0", "minReplicas: 9", "line 4: .*above maxReplicas", id="min"),
        pytest.param("nodes: 2", "nodes: none", "line 2: ", id="type"),
        pytest.param("  - name: small", "  - name: small: x", "line 4: no YAML", id="yaml"),
        pytest.param(GOOD, "[]", "is a mapping", id="no mapping"),
    ],
)
def test_a_mistake_is_named_with_its_line(before: str, after: str, complaint: str) -> None:
    assert before in GOOD
    with pytest.raises(errors.InputError, match=rf"^bad.yaml.*{complaint}"):
        reading.parse(GOOD.replace(before, after, 1), "bad.yaml")


def test_traffic_of_two_kinds_at_once_is_refused() -> None:
    text = GOOD + "        trace: azure-code\n"
    with pytest.raises(errors.InputError, match=r"line 12: .*give one of trace, poisson"):
        reading.parse(text, "bad.yaml")


@pytest.mark.parametrize("name", reading.packaged())
def test_scenarios_that_come_along_can_be_read(name: str) -> None:
    assert reading.parse(reading.packaged_text(name), name).models


def test_an_unknown_scenario_is_told_with_those_there_are() -> None:
    with pytest.raises(errors.UnknownName, match="azure-code-hour"):
        reading.packaged_text("azure-cod-hour")
