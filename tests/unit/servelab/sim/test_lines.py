"""What is wrong in a scenario is told with the line of the field itself, not of what it is in."""

import copy
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from modelserve import errors
from servelab.sim import reading
from servelab.sim.checking import Place

# What has no default; all that has one is added.
GIVEN = """\
description: every field there is
pools:
  - name: a
    gpu: NVIDIA-H100-80GB-HBM3
    labels: {zone: a}
    taints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]
    storage: {class: nvme, readBandwidth: 2GB/s, sharedBandwidth: 9GB/s}
    registry: {sharedBandwidth: 1GB/s, layerBandwidth: 100MB/s}
    faults: [{type: SlowEngine, factor: 2, afterSeconds: 5, durationSeconds: 9, nodes: [a-0]}]
  - name: b
    gpu: NVIDIA-H100-80GB-HBM3
    gpusPerNode: 2
    nodes: {min: 0, max: 2, bootSeconds: 90}
models:
  - name: small
    spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct, servedName: llama}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
      engine:
        image: vllm/vllm-openai:v0.32.0
        maxModelLength: 4096
        args: [--seed, "3"]
        env: [{name: A, value: b}]
      storage: {class: nvme, readBandwidth: 2GB/s}
      coldStart: {imageSize: 9GB, warmUpSeconds: 5, provisioningSeconds: 60}
      scaling:
        targetQueueDepth: 8
        drainGoalSeconds: 10
        scaleDown: {stabilizationWindowSeconds: 60}
        cooldownSeconds: 300
        fallbackReplicas: 1
      gateway: {slotsPerReplica: 16}
      template:
        labels: {team: b}
        annotations: {why: test}
        tolerations: [{key: team, operator: Equal, value: b, effect: NoSchedule}]
        nodeSelector: {zone: a}
        resources: {requests: {cpu: "2"}, limits: {memory: 20Gi}}
        priorityClassName: high
    traffic:
      - {poisson: {perSecond: 2, seconds: 60}, input: {median: 5, p95: 9, max: 20}}
      - {steady: {perSecond: 2, seconds: 60}}
      - {gamma: {perSecond: 2, cv: 2, seconds: 60}}
      - {onOff: {perSecond: 2, onSeconds: 5, offSeconds: 5, seconds: 60}}
      - {ramp: {fromPerSecond: 1, toPerSecond: 2, seconds: 60}}
      - {step: {toPerSecond: 2, atSeconds: 30, seconds: 60}}
      - {windows: {perSecond: [1, 2], secondsEach: 60}}
      - {serveGen: {client: m-mid/29, seconds: 60}}
      - {closed: {clients: 2, thinkSeconds: 1, seconds: 60}}
  - name: own
    spec:
      model:
        name: mine
        custom:
          {parameters: 8000000000, layers: 32, hidden: 4096, intermediate: 14336, heads: 32,
           kvHeads: 8, headDim: 128, vocab: 128256, tiedEmbeddings: false, maxContext: 131072}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
objective: {ttftSeconds: 5, tpotSeconds: 0.1}
gpuHourPrice: 3
leadInSeconds: 100
"""
# No field takes the last ones, whatever else it takes.
WRONG = ["no such thing", "", "9", -1, 0, 3, 8, 1e12, 10**30, True, [], ["x"], {}, {"odd": 1}]


def whole() -> reading.Document:
    """A scenario in which every field stands in a line of its own."""
    given = reading.parse(GIVEN, "given.yaml")
    content = given.model_dump(by_alias=True, mode="json", exclude_none=True)
    return reading.load(yaml.safe_dump(content), "mine.yaml")


WHOLE = whole()


def refusals(place: Place, wrong: Any) -> Iterator[tuple[int, str]]:
    """Line and place of everything that is said of the scenario with this in that place."""
    content: Any = copy.deepcopy(WHOLE.content)
    at = content
    for part in place[:-1]:
        at = at[part]
    at[place[-1]] = wrong
    try:
        reading.validate(reading.Document("mine.yaml", content, WHOLE.lines))
    except errors.InputError as error:
        for sentence in str(error).splitlines():
            told = re.match(r"mine\.yaml, line (\d+): (\S+): \S", sentence)
            assert told is not None, sentence
            yield int(told[1]), told[2]


@pytest.mark.parametrize("place", WHOLE.lines, ids=lambda place: ".".join(map(str, place)))
def test_a_mistake_is_told_with_the_line_of_its_own_field(place: Place) -> None:
    """Or, where two fields do not go together, with that of the other one."""
    own, name = WHOLE.lines[place], ".".join(map(str, place))
    for wrong in WRONG:
        for line, told in refusals(place, wrong):
            around = name.startswith(f"{told}.") and line != own
            assert not around, f"{wrong!r} is told of {told} in line {line}, and stands in {own}"


@pytest.mark.parametrize("place", WHOLE.lines, ids=lambda place: ".".join(map(str, place)))
def test_no_field_takes_everything(place: Place) -> None:
    name = ".".join(map(str, place))
    found = [told for wrong in (["x"], {"odd": 1}) for _, told in refusals(place, wrong)]
    assert any(told == name or told.startswith(f"{name}.") for told in found)


def at(place: Place) -> Any:
    found: Any = WHOLE.content
    for part in place:
        found = found[part]
    return found


NUMBERS = [place for place in WHOLE.lines if type(at(place)) in (int, float)]


@pytest.mark.parametrize("place", NUMBERS, ids=lambda place: ".".join(map(str, place)))
def test_no_number_may_be_a_truth_or_a_text(place: Place) -> None:
    where = WHOLE.lines[place], ".".join(map(str, place))
    for wrong in (True, str(at(place))):
        assert list(refusals(place, wrong)) == [where]


MODEL, ENGINE = ("models", 0, "spec", "model"), ("models", 0, "spec", "engine")
GPU = ("models", 0, "spec", "gpu")


@pytest.mark.parametrize(
    ("before", "after", "place"),
    [
        ("Llama-3.1-8B-", "Llama-3.1-9B-", (*MODEL, "name")),
        ("maxModelLength: 4096", "maxModelLength: 400000", (*ENGINE, "maxModelLength")),
        ("- --seed", "- --tensor-parallel-size", (*ENGINE, "args")),
        ("tensorParallel: 1", "tensorParallel: 3", (*GPU, "tensorParallel")),
        ("product: NVIDIA-H100-80GB-HBM3", "product: h1000", (*GPU, "product")),
        ("product: NVIDIA-H100-80GB-HBM3", "product: NVIDIA-L4", (*GPU, "product")),
        ("class: nvme", "class: nvmee", ("models", 0, "spec", "storage", "class")),
    ],
)
def test_what_the_catalogue_says_of_a_spec_is_told_of_its_field(
    before: str, after: str, place: Place
) -> None:
    text = yaml.safe_dump(WHOLE.content)
    assert before in text
    where = f"line {WHOLE.lines[place]}: {'.'.join(map(str, place))}: "
    with pytest.raises(errors.InputError, match=f"^mine.yaml, {where}"):
        reading.parse(text.replace(before, after, 1), "mine.yaml")


def test_too_few_gpus_on_a_node_are_told_of_how_many_are_asked_for() -> None:
    text = yaml.safe_dump(WHOLE.content)
    wrong = text.replace("tensorParallel: 1", "tensorParallel: 8", 1)
    wrong = wrong.replace("gpusPerNode: 8", "gpusPerNode: 4")
    with pytest.raises(errors.InputError, match=r"gpu.tensorParallel: small needs 8 × .* on one"):
        reading.parse(wrong, "mine.yaml")
