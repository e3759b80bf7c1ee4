"""One scenario twice: on the simulator, and on a cluster of its own with operator, gateway, nodes.

A model sleeps; requests come evenly for a minute; it wakes, grows, and answers them all. Times are
emulated seconds. On the cluster everything also takes real time, which counts ``SCALE``-fold: so
each bound is a share of what the simulator says, and real milliseconds of the machine's own.
"""

import concurrent.futures
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from modelserve import ports
from modelserve.api import wire
from modelserve.reconciling import sightings
from servelab.cluster import local
from servelab.sim import running, scenario

pytestmark = pytest.mark.cluster

SCALE = 8.0
REQUESTS, EVERY_S, OUTPUT_TOKENS, INPUT_TOKENS = 40, 1.5, 200, 40
GPU = "NVIDIA-H100-80GB-HBM3"
POOL = {"gpu": GPU, "gpusPerNode": 8, "nodes": 1}
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
# A share of the simulated value, and real seconds of a busy machine.
SHARE, BUSY_REAL_S = 0.15, 1.0
PATIENCE = "--timeout=30s"
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


@pytest.fixture(scope="module")
def simulated() -> Course:
    """The simulator's."""
    law = {"perSecond": 1 / EVERY_S, "seconds": REQUESTS * EVERY_S - EVERY_S / 2}
    traffic = [{"steady": law, "input": INPUT_TOKENS, "output": OUTPUT_TOKENS}]
    models = [{"name": "life", "spec": SPEC, "traffic": traffic}]
    given = scenario.Scenario.model_validate({"pools": [POOL], "models": models})
    found = running.run(given, "committed").models[0]
    first = found.ledger.measured[0]
    parts = (first.image_pull_s, first.weight_load_s, first.warm_up_s)
    by_part = dict(zip(PARTS, parts, strict=True))
    return Course(found.ledger.peak, by_part, sorted(found.records.ttft_s))


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    """The cluster's."""
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
        yield live(cluster)


def live(cluster: local.LocalCluster) -> Course:
    """Apply, ask, and look at what was there in the end."""
    pool = {"apiVersion": "emulator.modelserve.dev/v1alpha1", "kind": "GPUPool"}
    model = {"apiVersion": "modelserve.dev/v1alpha1", "kind": "ModelServe"}
    objects = [
        pool | {"metadata": {"name": "dgx"}, "spec": POOL},
        model | {"metadata": {"name": "life"}, "spec": SPEC},
    ]
    body = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    kubectl(cluster, "apply", "-f", "-", stdin=body)
    kubectl(cluster, "wait", "gpupool/dgx", "--for=jsonpath={.status.readyNodes}=1", PATIENCE)
    kubectl(cluster, "wait", "modelserve/life", "--for=condition=Ready", PATIENCE)
    began_real_s = time.monotonic() + 0.1
    with concurrent.futures.ThreadPoolExecutor(REQUESTS) as threads:
        asked = [
            threads.submit(first_token_s, cluster.gateway_url, began_real_s + n * EVERY_S / SCALE)
            for n in range(REQUESTS)
        ]
        found_s = sorted(each.result(timeout=90) for each in asked)
    pods = json.loads(kubectl(cluster, "get", "pods", "-o", "json"))["items"]
    first = min(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return Course(len(pods), parts_s(first), found_s)


def parts_s(pod: ports.Object) -> dict[str, float]:
    """What the pod's stamps say: emulated seconds by part."""
    stamps = sightings.phase_stamps(pod)
    assert stamps is not None
    return {part: stamps.emulated_s(phase) for part, phase in PARTS.items()}


def first_token_s(gateway_url: str, at_real_s: float) -> float:
    """Ask at that time, with the answer streamed; emulated seconds to the first token."""
    message = {"role": "user", "content": "word " * (INPUT_TOKENS - 30)}
    body = {
        "model": "life",
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


def kubectl(cluster: local.LocalCluster, *arguments: str, stdin: str = "") -> str:
    program = Path(sys.executable).with_name("kubectl")
    command: list[str] = [str(program), f"--kubeconfig={cluster.kubeconfig}", *arguments]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
