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
        pytest.param("traffic:", "trafic:", "line 11: .*did you mean traffic", id="unknown"),
        pytest.param("perSecond: 2", "perSecond: -2", "line 12: .*greater than 0", id="rate"),
        pytest.param("perSecond: 2, ", "", "line 12: .*perSecond: is missing", id="missing"),
        pytest.param("poisson", "gamma", "line 12: .*cv: is missing", id="another law"),
        pytest.param("minReplicas: 0", "minReplicas: 9", "line 9: .*above maxReplicas", id="min"),
        pytest.param("nodes: 2", "nodes: none", "line 2: ", id="type"),
        pytest.param(
            "minReplicas: 0", "targetUtilization: .nan", "line 9: .*finite number", id="no number"
        ),
        pytest.param("  - name: small", "  - name: small: x", "line 4: no YAML", id="yaml"),
        pytest.param(GOOD, "[]", "is a mapping", id="no mapping"),
        pytest.param("traffic:", "spec: {}\n    traffic:", "line 11: spec is there", id="twice"),
        pytest.param("pools:", "pools: &a [*a]\nx:", "line 1: pools.0", id="an alias of itself"),
        pytest.param("nodes: 2", "nodes: 2026-13-01", "line 2: no YAML", id="a month too many"),
        pytest.param("nodes: 2", "nodes: " + "9" * 5000, "line 2: no YAML", id="5,000 digits"),
        pytest.param("minReplicas: 0", "3: 0", "line 9: .*scaling.3: keys", id="a number as key"),
        pytest.param("name: small", r'name: "\UFFFFFFFF"', "no YAML", id="no character"),
        pytest.param("pools:", "pools: " + "[" * 5000, "nested too deeply", id="brackets"),
        pytest.param("pools:", "? [a]\n: 1\npools:", "no YAML", id="a list as key"),
        pytest.param("nodes: 2", "nodes: 0", "line 7: .*no pool has that", id="no node"),
        pytest.param("nodes: 2", "nodes: {min: 3, max: 2}", "line 2: .*min 3 is more", id="pool"),
        pytest.param(
            "nodes: 2", "faults: [{type: Flood}]", "line 2: .*faults.0.type: .*NodeLost", id="fault"
        ),
        pytest.param(
            "nodes: 2",
            "faults: [{type: NodeLost, nodes: [pool-9]}]",
            "line 2: .*nodes.0: pool pool never has a node pool-9",
            id="a fault of no node",
        ),
        pytest.param(
            "nodes: 2",
            "storage: {class: nvmee}",
            "line 2: pools.0.storage.class: unknown storage class 'nvmee'; did you mean nvme",
            id="storage",
        ),
        pytest.param("nodes: 2", "memory: '1'", "line 2: pools.0.memory: 1 is no more", id="small"),
        pytest.param(
            "nodes: 2", "timeSlicing: {replicas: 2}", "line 2: .*only whole GPUs", id="slices"
        ),
        pytest.param(
            "nodes: 2",
            "faults: [{type: NodeLost, at: '2026-11-30T09:00:00Z'}]",
            "line 2: .*faults.0.at: .*give afterSeconds",
            id="a fault's date",
        ),
        pytest.param(
            "      gpu: {",
            "      template: {annotations: {emulator.modelserve.dev/faults: '[{}]'}}\n      gpu: {",
            "line 7: .*item 0: type: Field required",
            id="a pod's fault",
        ),
        pytest.param("nodes: 2", "gpusPerNode: 1, nodes: 2", "line 9: .*always taken", id="few"),
        pytest.param("H100-80GB-HBM3, n", "H200X, n", "line 2: pools.0.gpu: unknown", id="gpu"),
        pytest.param("Llama-3.1-8B", "Llama-3.1-9B", "line 6: .*unknown model", id="model"),
        pytest.param(
            "      gpu: {", "      gpu: {tensorParallel: 3, ", "line 7: .*1, 2, 4 or 8", id="tp"
        ),
        pytest.param(
            "minReplicas: 0", "targetUtilization: 0", "line 9: .*over 0 and at most 2", id="share"
        ),
        pytest.param(
            "    traffic:", "    initialReplicas: 5\n    traffic:", "line 11: .*above", id="initial"
        ),
    ],
)
def test_a_mistake_is_named_with_its_line(before: str, after: str, complaint: str) -> None:
    assert before in GOOD
    few = "gpusPerNode: 1" in after  # then the least replicas do not fit
    bad = GOOD.replace("minReplicas: 0", "minReplicas: 3") if few else GOOD
    with pytest.raises(errors.InputError, match=rf"^bad.yaml.*{complaint}"):
        reading.parse(bad.replace(before, after, 1), "bad.yaml")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("true", "must be a number, and is true"),
        ("on", "must be a number, and is true"),
        ("'2'", "must be a number, and is the text '2': write 2"),
        ("'1e3'", "must be a number, and is the text '1e3': write 1000"),
        ("two", "must be a number, and is the text 'two'"),
    ],
)
def test_a_text_or_a_truth_is_no_number(given: str, said: str) -> None:
    text = GOOD.replace("perSecond: 2", f"perSecond: {given}")
    with pytest.raises(errors.InputError) as told:
        reading.parse(text, "bad.yaml")
    assert str(told.value) == f"bad.yaml, line 12: models.0.traffic.0.poisson.perSecond: {said}"


@pytest.mark.parametrize("given", ["yes please", "'true'", "1"])
def test_a_text_or_a_number_is_no_truth(given: str) -> None:
    custom = "{parameters: 8000000000, layers: 32, hidden: 4096, intermediate: 14336, heads: 32, "
    custom += f"kvHeads: 8, headDim: 128, vocab: 128256, tiedEmbeddings: {given}, maxContext: 99}}"
    text = GOOD.replace("Instruct}", f"Instruct, custom: {custom}}}")
    with pytest.raises(
        errors.InputError, match=r"^bad.yaml, line 6: \S+tiedEmbeddings: must be true or false"
    ):
        reading.parse(text, "bad.yaml")


@pytest.mark.parametrize(
    ("given", "meant"), [("1e3", 1000), ("1.5e2", 150), ("+.5E+1", 5), ("2e-1", 0.2), ("3", 3)]
)
def test_numbers_with_an_exponent_are_numbers(given: str, meant: float) -> None:
    text = GOOD.replace("perSecond: 2", f"perSecond: {given}")
    (traffic,) = reading.parse(text, "good.yaml").models[0].traffic
    assert traffic.poisson is not None
    assert traffic.poisson.per_second == meant


def test_a_whole_number_may_be_written_with_a_point() -> None:
    found = reading.parse(GOOD.replace("maxReplicas: 4", "maxReplicas: 4.0"), "good.yaml")
    assert found.models[0].spec.scaling.max_replicas == 4


def test_traffic_of_two_kinds_at_once_is_refused() -> None:
    text = GOOD + "        trace: azure-code\n"
    with pytest.raises(
        errors.InputError, match=r"line 13: .*traffic.0.trace: give one of trace, poisson"
    ):
        reading.parse(text, "bad.yaml")


@pytest.mark.parametrize("name", reading.packaged())
def test_scenarios_that_come_along_can_be_read(name: str) -> None:
    assert reading.parse(reading.packaged_text(name), name).models


def test_an_unknown_scenario_is_told_with_those_there_are() -> None:
    with pytest.raises(errors.UnknownName, match="azure-code-hour"):
        reading.packaged_text("azure-cod-hour")


def test_a_trace_brings_its_own_lengths() -> None:
    text = GOOD.replace("poisson: {perSecond: 2, seconds: 60}", "{trace: azure-code, input: 9}")
    with pytest.raises(errors.InputError, match=r"line 12: .*lengths of its own"):
        reading.parse(text, "bad.yaml")


def test_no_more_than_five_mistakes_are_told_at_once() -> None:
    text = GOOD + "".join(f"wrong{n}: 1\n" for n in range(9))
    with pytest.raises(errors.InputError) as refused:
        reading.parse(text, "bad.yaml")
    assert len(str(refused.value).splitlines()) == 5


@pytest.mark.parametrize(
    ("length", "complaint"),
    [
        pytest.param("{median: 5, p95: 2}", "input.p95: p95 2 is below the median 5", id="order"),
        pytest.param("{median: 5, p9: 9}", "input.p9: there is no such field", id="unknown"),
        pytest.param("{p95: 9}", "input.median: is missing", id="missing"),
        pytest.param("0", "input: input should be greater than or equal to 1", id="number"),
    ],
)
def test_of_what_may_be_a_number_or_fields_only_what_is_meant_is_told(
    length: str, complaint: str
) -> None:
    with pytest.raises(errors.InputError) as told:
        reading.parse(f"{GOOD}        input: {length}\n", "bad.yaml")
    place = "bad.yaml, line 13: models.0.traffic.0."
    assert str(told.value).startswith(place + complaint)
    assert "\n" not in str(told.value)
