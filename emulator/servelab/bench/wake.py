"""Bench ``wake``: what our own processes add to a cold start, at time scale 1.

A small model on fast storage makes a cold start of some seconds, so that many can be measured. The
models stand alone on their links, and requests come one at a time.
"""

import asyncio
import contextlib
import json
import statistics
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any

from modelserve import ports
from modelserve.adapters import clock as clocks
from modelserve.adapters import kube
from modelserve.api import names, wire
from modelserve.catalog import gpus, models
from modelserve.engines import steplaw
from servelab.bench import figure, machine
from servelab.bench.registry import Say
from servelab.cluster import local, record, reporting, scratch
from servelab.trial import answer, client, eyes, payload
from servelab.workload import arrivals

SAMPLES = 20
OVERHEAD_PAIRS = 10  # of requests, for each sample
IDLE_MODELS = 100
IDLE_SETTLE_REAL_S = 15.0
IDLE_MEASURE_REAL_S = 20.0
LIMIT_REAL_S = 90.0

GPU = "NVIDIA-H100-80GB-HBM3"
MODEL = "meta-llama/Llama-3.1-8B-Instruct"
PROMPT_TOKENS = 30
# The goal for predictions: a share of the prediction, plus so many seconds.
PREDICTION_SHARE = 0.05
PREDICTION_SLACK_S = 0.2

POOL = {"gpu": GPU, "gpusPerNode": 8, "nodes": 1, "storage": {"readBandwidth": "32GB/s"}}
SPEC: dict[str, Any] = {
    "model": {"name": MODEL},
    "gpu": {"product": GPU},
    "storage": {"readBandwidth": "16GB/s", "loader": "streaming"},
    "coldStart": {"imageSize": "20MB", "warmUpSeconds": 1},
}
# Back to zero as soon as it is quiet, so that the next sample can begin.
QUICK_TO_ZERO = {"cooldownSeconds": 1, "scaleDown": {"stabilizationWindowSeconds": 0}}


def run(samples: int | None, say: Say) -> Sequence[figure.Figure]:
    """Start a cluster of its own, measure, stop it."""
    with scratch.directory("servelab-bench") as directory:
        options = local.Options(
            name="bench", data_dir=directory / "cluster", time_scale=1.0, keep=False
        )
        with reporting.closing(reporting.for_stream()) as reporter:
            cluster = local.LocalCluster(options, reporter).start()
        try:
            return asyncio.run(_measure(cluster, samples or SAMPLES, say))
        finally:
            cluster.stop()


async def _measure(cluster: local.LocalCluster, samples: int, say: Say) -> Sequence[figure.Figure]:
    clock = clocks.SystemClock()
    address = urllib.parse.urlsplit(cluster.gateway_url)
    async with await kube.KubeCluster.connect(str(cluster.kubeconfig), clock=clock) as api:
        watched = eyes.Eyes(api)
        async with watched.open():
            bench = Bench(api, watched, str(address.hostname), int(address.port or 80))
            say(f"the operator at rest with {IDLE_MODELS} models at zero")
            running = record.read(cluster.home.directory)
            assert running is not None
            rest = await bench.at_rest(running.children["operator"].pid)
            say(f"{samples} cold starts, one after the other")
            wakes = await bench.wakes(samples)
            say(f"the gateway's overhead, {samples * OVERHEAD_PAIRS} requests each way")
            overhead = await bench.overhead(samples * OVERHEAD_PAIRS)
    return [*_figures(wakes), overhead, *rest]


class Wake:
    """The moments of one cold start."""

    def __init__(self, watched: eyes.Eyes, name: str) -> None:
        self.watched = watched
        self.name = name
        self.predicted = watched.status(name)["coldStart"]["predicted"]
        self.samples_before = _samples(watched, name)
        self._scaled = eyes.Moment(watched.deployments, self._orders)
        self._bound = eyes.Moment(watched.pods, self._binds)
        self.outcome: answer.Outcome | None = None
        # Unix time minus monotonic time, to compare with the emulator's stamps.
        self._offset_s = time.time() - time.monotonic()
        self.measured: dict[str, float] = {}
        self.warm_real_s = 0.0

    def close(self) -> None:
        """Look no more."""
        self._scaled.close()
        self._bound.close()

    @property
    def to_scale_write_s(self) -> float:
        """Request sent → count seen changed."""
        return self._scaled.after(self._sent.sent_real_s)

    @property
    def to_bound_s(self) -> float:
        """Request sent → pod seen on its node."""
        return self._bound.after(self._sent.sent_real_s)

    @property
    def ready_to_first_byte_s(self) -> float:
        """End of the last emulated part → first byte, less the emulated prefill."""
        law = steplaw.StepLaw.of(models.find(MODEL), gpus.find(GPU), 1)
        first_unix_s = self._sent.first_real_s + self._offset_s
        return first_unix_s - self.warm_real_s - law.first_token_s(PROMPT_TOKENS)

    @property
    def prediction_error(self) -> float:
        """By how much the cold start missed its prediction, as a share of it."""
        return abs(float(self.measured["totalSeconds"]) - self.predicted_s) / self.predicted_s

    @property
    def predicted_s(self) -> float:
        """The prediction as it stood when the request was sent."""
        return float(self.predicted["totalSeconds"])

    @property
    def _sent(self) -> answer.Outcome:
        assert self.outcome is not None
        return self.outcome

    def _orders(self, deployment: ports.Object) -> bool:
        named = deployment["metadata"]["name"] == self.name
        return named and bool(deployment["spec"].get("replicas"))

    def _binds(self, pod: ports.Object) -> bool:
        return bool(pod["spec"].get("nodeName")) and eyes.serving(pod)


class Bench:
    """The measurements, against a running cluster."""

    def __init__(self, api: ports.Cluster, watched: eyes.Eyes, host: str, port: int) -> None:
        self._api = api
        self._watched = watched
        self._host, self._port = host, port

    async def at_rest(self, operator_pid: int) -> list[figure.Figure]:
        """The operator's share of a core and memory with models at zero and no traffic."""
        rest = [f"rest-{number:03d}" for number in range(IDLE_MODELS)]
        await self._apply_pool()
        for name in rest:
            await self._apply(name, {})
        await asyncio.sleep(IDLE_SETTLE_REAL_S)
        begun_real_s, before = time.monotonic(), machine.usage(operator_pid)
        await asyncio.sleep(IDLE_MEASURE_REAL_S)
        after, span_real_s = machine.usage(operator_pid), time.monotonic() - begun_real_s
        for name in rest:
            await self._api.delete(ports.MODELSERVES, self._watched.namespace, name)
        cores = (after.cpu_s - before.cpu_s) / span_real_s
        return [
            figure.Figure("operator_idle_cores", cores, "cores", "lower", 0.05),
            figure.Figure("operator_idle_rss_bytes", after.rss_bytes, "bytes", "lower", 150e6),
        ]

    async def wakes(self, count: int) -> list[Wake]:
        """That many cold starts; one before them, so that the image is on the node."""
        await self._apply("sleeper", QUICK_TO_ZERO)
        await self._wake("sleeper")
        return [await self._wake("sleeper") for _ in range(count)]

    async def overhead(self, pairs: int) -> figure.Figure:
        """First byte through the gateway less first byte from the engine itself, at the median."""
        await self._apply("warm", {"minReplicas": 1})
        dial = await self._watched.until(
            lambda: next(map(_dial, filter(eyes.ready, self._watched.engines("warm"))), None),
            LIMIT_REAL_S,
            "a ready replica",
        )
        host, _, port = dial.rpartition(":")
        through = client.Client(self._host, self._port)
        direct = client.Client(host, int(port))
        waits: tuple[list[float], list[float]] = ([], [])
        try:
            for number in range(pairs + 5):
                for sender, into in zip((through, direct), waits, strict=True):
                    outcome = await sender.send(self._request("warm", 1, number))
                    if number >= 5 and not outcome.problem:
                        into.append(outcome.wait_real_s)
        finally:
            through.close()
            direct.close()
        value = statistics.median(waits[0]) - statistics.median(waits[1])
        return figure.Figure("gateway_overhead_p50", value, "s", "lower", 0.003, len(waits[0]))

    async def _wake(self, name: str) -> Wake:
        wake = Wake(self._watched, name)
        sender = client.Client(self._host, self._port)
        try:
            async with asyncio.timeout(LIMIT_REAL_S):
                wake.outcome = await sender.send(self._request(name, 4, wake.samples_before))
        finally:
            sender.close()
        wake.warm_real_s = await self._watched.until(
            lambda: _warm_real_s(self._watched.engines(name)), LIMIT_REAL_S, "the stamps of a pod"
        )
        await self._watched.until(
            lambda: _samples(self._watched, name) > wake.samples_before,
            LIMIT_REAL_S,
            "a measured cold start",
        )
        wake.measured = self._watched.status(name)["coldStart"]["last"]
        await self._watched.until(
            lambda: not self._watched.engines(name) and not self._watched.ordered(name),
            LIMIT_REAL_S,
            f"{name} at zero",
        )
        wake.close()
        # The operator tells its status after the fact; the next sample begins from rest.
        await asyncio.sleep(1.0)
        return wake

    async def _apply_pool(self) -> None:
        await self._api.apply(
            ports.GPUPOOLS, None, "bench", {"spec": POOL}, manager="servelab-bench"
        )

    async def _apply(self, name: str, scaling: dict[str, Any]) -> None:
        """Apply a model and wait until it is accepted and has a prediction."""
        body = {"spec": {**SPEC, "scaling": scaling}}
        where = self._watched.namespace
        await self._api.apply(ports.MODELSERVES, where, name, body, manager="servelab-bench")
        await self._watched.until(
            lambda: (
                self._watched.condition(name, "Ready").get("status") == "True"
                and self._watched.status(name).get("coldStart", {}).get("predicted")
            ),
            LIMIT_REAL_S,
            f"condition Ready of {name}",
        )

    def _request(self, name: str, tokens: int, seed: int) -> payload.Request:
        lengths = arrivals.Arrival(0.0, PROMPT_TOKENS, tokens)
        return payload.streamed_chat(name, f"{self._host}:{self._port}", lengths, seed)


def _figures(wakes: Sequence[Wake]) -> list[figure.Figure]:
    answered = [wake for wake in wakes if wake.outcome and not wake.outcome.problem]
    predicted_s = statistics.median(wake.predicted_s for wake in wakes)
    return [
        figure.quantile(
            "arrival_to_scale_write_p50", [w.to_scale_write_s for w in answered], 0.5, "s", 0.02
        ),
        figure.quantile("arrival_to_bound_p50", [w.to_bound_s for w in answered], 0.5, "s", 0.08),
        figure.quantile(
            "ready_to_first_byte_p50", [w.ready_to_first_byte_s for w in answered], 0.5, "s", 0.1
        ),
        figure.quantile(
            "cold_start_prediction_error_p95",
            [w.prediction_error for w in answered],
            0.95,
            "share",
            round(PREDICTION_SHARE + PREDICTION_SLACK_S / predicted_s, 4),
        ),
    ]


def _samples(watched: eyes.Eyes, name: str) -> int:
    measured = watched.status(name).get("coldStart", {}).get("measured") or {}
    return int(measured.get("samples") or 0)


def _dial(pod: ports.Object) -> str:
    return str(pod["metadata"]["annotations"][names.DIAL])


def _warm_real_s(pods: Sequence[ports.Object]) -> float:
    """When the last emulated part ended (Unix real s); 0 while it has not been told."""
    for pod in pods:
        with contextlib.suppress(KeyError, ValueError):
            stamps = wire.PhaseStamps.parse(
                json.loads(pod["metadata"]["annotations"][names.PHASES])
            )
            for stamp in stamps.stamps:
                if stamp.phase is wire.Phase.WARM_UP and stamp.end_ms:
                    return stamp.end_ms / 1000
    return 0.0
