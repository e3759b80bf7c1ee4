"""One scenario twice: on the simulator, and on a cluster of its own with operator, gateway, nodes.

A model sleeps; requests come evenly for a minute; it wakes, grows, and answers them all. Times are
emulated seconds. On the cluster everything also takes real time, which counts ``SCALE``-fold: so
each bound is a share of what the simulator says, and real milliseconds of the machine's own.
"""

import concurrent.futures
import json
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modelserve import ports
from modelserve.api import names, wire
from modelserve.reconciling import sightings
from servelab.cluster import local
from servelab.sim import running, scenario

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]

SCALE = 8.0
REQUESTS, EVERY_S, OUTPUT_TOKENS, INPUT_TOKENS = 40, 1.5, 200, 40
GPU = "NVIDIA-H100-80GB-HBM3"
POOL = {"gpu": GPU, "gpusPerNode": 8, "nodes": 1}
# Nodes of another kind, which come when pods wait for them.
BOOT_S = 60.0
OTHER_GPU = "NVIDIA-A100-SXM4-80GB"
ELASTIC = {
    "gpu": OTHER_GPU,
    "gpusPerNode": 8,
    "nodes": {"min": 0, "max": 1, "bootSeconds": BOOT_S, "deviceSeconds": 10, "idleSeconds": 3600},
}
SPEC: dict[str, Any] = {
    "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
    "gpu": {"product": GPU},
    "engine": {"batching": {"maxSequences": 4}},
    "scaling": {
        "maxReplicas": 4,
        "cooldownSeconds": 3600,
        "scaleDown": {"stabilizationWindowSeconds": 3600},
    },
}
ELSEWHERE = SPEC | {
    "gpu": {"product": OTHER_GPU},
    "coldStart": {"provisioningSeconds": BOOT_S},
}
# A share of the simulated value, and real seconds of a busy machine.
SHARE, BUSY_REAL_S = 0.15, 1.0
PATIENCE = "--timeout=60s"
PARTS = {
    "image pull": wire.Phase.IMAGE_PULL,
    "weight load": wire.Phase.WEIGHT_LOAD,
    "warm-up": wire.Phase.WARM_UP,
}


@dataclass(frozen=True)
class Course:
    """What came of it: pods, the first cold start by part, when each first token came."""

    pods: int
    parts_s: dict[str, float]
    first_token_s: list[float]


def simulate(name: str, pool: dict[str, Any], spec: dict[str, Any]) -> Course:
    """The simulator's course."""
    law = {"perSecond": 1 / EVERY_S, "seconds": REQUESTS * EVERY_S - EVERY_S / 2}
    traffic = [{"steady": law, "input": INPUT_TOKENS, "output": OUTPUT_TOKENS}]
    models = [{"name": name, "spec": spec, "traffic": traffic}]
    given = scenario.Scenario.model_validate({"pools": [pool], "models": models})
    found = running.run(given, "committed").models[0]
    first = found.ledger.measured[0]
    parts = (first.image_pull_s, first.weight_load_s, first.warm_up_s)
    by_part = dict(zip(PARTS, parts, strict=True))
    return Course(found.ledger.peak, by_part, sorted(found.records.ttft_s))


@pytest.fixture(scope="module")
def simulated() -> Course:
    """On a node that stands."""
    return simulate("life", POOL, SPEC)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[local.LocalCluster]:
    """One with operator, gateway and nodes."""
    options = local.Options(
        name="life",
        data_dir=tmp_path_factory.mktemp("life") / "cluster",
        time_scale=SCALE,
        processes=(),
        keep=False,
    )
    with local.LocalCluster(options) as cluster:
        cluster.install()
        cluster.start_processes()
        yield cluster


@pytest.fixture(scope="module")
def run(cluster: local.LocalCluster, kubectl_for: Callable[[Path], Kubectl]) -> Kubectl:
    """kubectl for it."""
    return kubectl_for(cluster.kubeconfig)


@pytest.fixture(scope="module")
def lived(cluster: local.LocalCluster, run: Kubectl) -> Course:
    """On a node that stands."""
    create(run, "GPUPool", "dgx", POOL)
    run("wait", "gpupool/dgx", "--for=jsonpath={.status.readyNodes}=1", PATIENCE)
    return live(run, cluster.gateway_url, "life", SPEC)


def create(kubectl: Kubectl, kind: str, name: str, spec: dict[str, Any]) -> None:
    """Apply a GPUPool or a ModelServe."""
    group = "emulator.modelserve.dev" if kind == "GPUPool" else "modelserve.dev"
    version = {"apiVersion": f"{group}/v1alpha1", "kind": kind}
    body = version | {"metadata": {"name": name}, "spec": spec}
    kubectl("apply", "-f", "-", stdin=json.dumps(body))


def live(kubectl: Kubectl, url: str, name: str, spec: dict[str, Any]) -> Course:
    """Create the model, ask, and look at what was there in the end."""
    create(kubectl, "ModelServe", name, spec)
    kubectl("wait", f"modelserve/{name}", "--for=condition=Ready", PATIENCE)
    began_real_s = time.monotonic() + 0.1
    with concurrent.futures.ThreadPoolExecutor(REQUESTS) as threads:
        asked = [
            threads.submit(first_token_s, url, name, began_real_s + n * EVERY_S / SCALE)
            for n in range(REQUESTS)
        ]
        found_s = sorted(each.result(timeout=90) for each in asked)
    mine = f"{names.LABEL_MODELSERVE}={name}"
    pods = json.loads(kubectl("get", "pods", "-l", mine, "-o", "json").stdout)["items"]
    first = min(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return Course(len(pods), parts_s(first), found_s)


def parts_s(pod: ports.Object) -> dict[str, float]:
    """What the pod's stamps say: emulated seconds by part."""
    stamps = sightings.phase_stamps(pod)
    assert stamps is not None
    return {part: stamps.emulated_s(phase) for part, phase in PARTS.items()}


def first_token_s(gateway_url: str, model: str, at_real_s: float) -> float:
    """Ask at that time, with the answer streamed; emulated seconds to the first token."""
    message = {"role": "user", "content": "word " * (INPUT_TOKENS - 30)}
    body = {
        "model": model,
        "messages": [message],
        "max_tokens": OUTPUT_TOKENS,
        "ignore_eos": True,
        "stream": True,
    }
    request = urllib.request.Request(
        f"{gateway_url}/v1/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    time.sleep(max(0.0, at_real_s - time.monotonic()))
    with urllib.request.urlopen(request, timeout=80) as answer:
        for line in answer:
            if b'"content":"' in line.replace(b": ", b":").replace(b'"content":""', b""):
                took_real_s = time.monotonic() - at_real_s
                break
        answer.read()
    return took_real_s * SCALE


def near(lived_s: float, simulated_s: float) -> bool:
    """Within the bounds. Life is never quicker than its share, and slower by the machine too."""
    least_s = simulated_s * (1 - SHARE) - BUSY_REAL_S * SCALE / 4
    return least_s <= lived_s <= simulated_s * (1 + SHARE) + BUSY_REAL_S * SCALE


@pytest.mark.parametrize("part", PARTS)
def test_the_parts_of_a_cold_start_take_what_they_take_in_the_simulator(
    lived: Course, simulated: Course, part: str
) -> None:
    assert near(lived.parts_s[part], simulated.parts_s[part]), (lived, simulated)


def test_it_grows_to_as_many_replicas(lived: Course, simulated: Course) -> None:
    assert abs(lived.pods - simulated.pods) <= 1
    assert simulated.pods > 1


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_first_tokens_come_when_they_come_in_the_simulator(
    lived: Course, simulated: Course, share: float
) -> None:
    assert len(lived.first_token_s) == len(simulated.first_token_s) == REQUESTS
    cut = round(share * 100) - 1
    ours_s = statistics.quantiles(lived.first_token_s, n=100)[cut]
    theirs_s = statistics.quantiles(simulated.first_token_s, n=100)[cut]
    assert near(ours_s, theirs_s), (ours_s, theirs_s)


def test_a_node_that_has_to_come_is_waited_for_as_long(
    cluster: local.LocalCluster, run: Kubectl
) -> None:
    create(run, "GPUPool", "spot", ELASTIC)
    lived = live(run, cluster.gateway_url, "grown", ELSEWHERE)
    simulated = simulate("grown", ELASTIC, ELSEWHERE)
    assert near(lived.first_token_s[-1], simulated.first_token_s[-1]), (lived, simulated)
    assert simulated.first_token_s[-1] > BOOT_S + simulated.parts_s["weight load"]
    for part, simulated_s in simulated.parts_s.items():
        assert near(lived.parts_s[part], simulated_s), (lived, simulated)
