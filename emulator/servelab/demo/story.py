"""The acts of the demo, against a running cluster.

Apply at zero → one request wakes the model → ten minutes of real traffic → silence, and zero.
"""

import asyncio
import contextlib
import dataclasses
import time
import urllib.parse
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass

from modelserve import errors, ports
from modelserve.api import spec
from modelserve.decide import prediction
from servelab.demo import examples, results, scene
from servelab.demo.view import View
from servelab.trial import answer, client, eyes, load, payload, scraping, worker
from servelab.workload import arrivals, tracefile

POOL = "gpu-pool.yaml"
MODEL = "llama-8b-small-batch.yaml"
FIRST = arrivals.Arrival(0.0, 30, 40)

ACTIVATION = "modelserve_activation_seconds"
FRAME_REAL_S = 0.25
# A wake is measured from rest, and the last thing to be seen is rest again.
REST_REAL_S = 1.5
# Limits, each of emulated time plus real time for what no scale makes quicker.
READY_REAL_S = 30.0
COLD_START_S = 900.0
SILENCE_S = 1500.0
SLACK_REAL_S = 45.0


@dataclass(frozen=True, slots=True)
class Plan:
    """``time_scale``: emulated seconds in a real one; ``minutes`` of the trace, emulated."""

    time_scale: float
    minutes: float
    seed: int


class Story:
    """One telling; ``run`` once."""

    def __init__(
        self,
        plan: Plan,
        cluster: ports.Cluster,
        clock: ports.Clock,
        urls: Mapping[str, str],
        view: View,
    ) -> None:
        self._plan = plan
        self._cluster = cluster
        self._clock = clock
        self._operator_metrics = urls["operatorMetrics"]
        address = urllib.parse.urlsplit(urls["gateway"])
        self._host, self._port = str(address.hostname), int(address.port or 80)
        self._view = view
        self._documents = examples.load(MODEL)
        self._name = str(self._documents[0]["metadata"]["name"])
        self._eyes = eyes.Eyes(cluster)
        self._series = scene.Series(self._eyes, self._name, clock)
        self._act = ""
        self._begun_real_s = clock.real_s()
        self._progress = load.Progress()
        self._late_real_s: Sequence[float] = ()

    async def run(self, told_real_s: float) -> results.Result:
        """Tell it all; wall time counts from ``told_real_s`` (monotonic).

        Raises ModelServeError if an act does not come to its end.
        """
        async with self._eyes.open(), self._showing():
            await self._prepare()
            self._begun_real_s = self._clock.real_s()
            self._series.begin()
            cold, wake, predicted = await self._wake()
            measured = await self._measured()
            warm = await self._traffic()
            zero = await self._silence()
            end_real_s = self._clock.real_s()
        scale = self._plan.time_scale
        return results.Result(
            time_scale=scale,
            wall_s=end_real_s - told_real_s,
            length_s=(end_real_s - self._begun_real_s) * scale,
            cold=[cold],
            warm=warm,
            scaled_to_zero=zero,
            wake=wake,
            predicted=predicted,
            measured=measured,
            replicas=self._series.since(self._begun_real_s, scale),
            gpus_per_replica=int(self._eyes.status(self._name).get("gpu", {}).get("perReplica", 1)),
            late_real_s=self._late_real_s,
        )

    async def _prepare(self) -> None:
        """Nodes and the model, at zero."""
        self._act = "applying the pool and the model"
        await examples.apply(self._cluster, examples.load(POOL))
        await examples.apply(self._cluster, self._documents)
        await self._eyes.until(
            lambda: self._eyes.condition(self._name, "Ready").get("status") == "True",
            READY_REAL_S,
            f"condition Ready of {self._name}",
        )
        await self._eyes.until(
            lambda: self._eyes.status(self._name).get("coldStart", {}).get("predicted"),
            READY_REAL_S,
            "a predicted cold start",
        )
        await self._clock.sleep_real(REST_REAL_S)

    async def _wake(self) -> tuple[answer.Outcome, results.Wake, dict[str, float]]:
        """One request at zero: held, then answered."""
        self._act = "one request wakes the model"
        predicted = results.parts(self._eyes.status(self._name)["coldStart"]["predicted"])
        scaled = eyes.Moment(self._eyes.deployments, lambda d: bool(d["spec"].get("replicas")))
        bound = eyes.Moment(self._eyes.pods, lambda pod: bool(pod["spec"].get("nodeName")))
        host = f"{self._host}:{self._port}"
        request = payload.streamed_chat(self._served_name, host, FIRST, self._plan.seed)
        sender = client.Client(self._host, self._port)
        self._progress = load.Progress(sent=1)
        try:
            async with asyncio.timeout(COLD_START_S / self._plan.time_scale + SLACK_REAL_S):
                outcome = await sender.send(request)
        except TimeoutError:
            late_real_s = time.monotonic()
            outcome = answer.Outcome(0.0, late_real_s, 0.0, late_real_s, 0, 0, "no answer in time")
        finally:
            sender.close()
        self._progress = load.Progress(1, 1, int(bool(outcome.problem)))
        wake = results.Wake(
            scaled.after(outcome.sent_real_s),
            bound.after(outcome.sent_real_s),
            outcome.wait_real_s,
            scraping.mean(await scraping.read(self._operator_metrics), ACTIVATION),
        )
        return outcome, wake, predicted

    async def _measured(self) -> dict[str, float]:
        """The cold start by part, once the operator has taken its measure."""
        with contextlib.suppress(errors.ModelServeError):
            last = await self._eyes.until(
                lambda: self._eyes.status(self._name).get("coldStart", {}).get("last"),
                SLACK_REAL_S,
                "a measured cold start",
            )
            return results.parts(last)
        return {}

    async def _traffic(self) -> Sequence[answer.Outcome]:
        """Minutes of the published trace, open loop."""
        window = arrivals.window(tracefile.shipped(), self._plan.minutes * 60)
        requests = list(arrivals.limited(window, self._max_model_tokens))
        if not requests:
            return []
        summary = arrivals.summarise(requests)
        self._act = (
            f"{summary.requests} requests of the Azure conversation trace, {summary.per_s:.1f} a "
            f"second, {summary.mean_output_tokens:.0f} tokens each"
        )
        plan = worker.Plan(
            self._host,
            self._port,
            self._served_name,
            self._plan.time_scale,
            self._plan.seed,
            requests,
        )
        before = self._progress
        async with load.Load(plan, lambda now: self._note(before, now)) as running:
            start_real_s, outcomes = await running.run()
        self._late_real_s = [
            outcome.sent_real_s - start_real_s - outcome.at_s / self._plan.time_scale
            for outcome in outcomes
        ]
        failed = sum(1 for outcome in outcomes if outcome.problem)
        self._note(before, load.Progress(len(outcomes), len(outcomes), failed))
        return outcomes

    async def _silence(self) -> bool:
        """Nobody asks: the last replica goes."""
        self._act = "silence"
        limit_real_s = SILENCE_S / self._plan.time_scale + SLACK_REAL_S
        try:
            await self._eyes.until(self._at_zero, limit_real_s, "zero replicas")
        except errors.ModelServeError:
            return False
        self._act = "at zero again"
        await self._clock.sleep_real(REST_REAL_S)
        return self._at_zero()

    def _at_zero(self) -> bool:
        return not self._eyes.ordered(self._name) and not self._eyes.engines(self._name)

    def _note(self, before: load.Progress, now: load.Progress) -> None:
        self._progress = load.Progress(
            before.sent + now.sent, before.done + now.done, before.errors + now.errors
        )

    @property
    def _served_name(self) -> str:
        return str(self._documents[0]["spec"]["model"].get("servedName", self._name))

    @property
    def _max_model_tokens(self) -> int:
        served = self._eyes.modelserves.get(self._eyes.namespace, self._name)
        assert served is not None
        return prediction.max_model_tokens(spec.ModelServeSpec.model_validate(served["spec"]))

    @contextlib.asynccontextmanager
    async def _showing(self) -> AsyncIterator[None]:
        """Show a scene several times a second while the block runs."""
        task = asyncio.create_task(self._show())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _show(self) -> None:
        while True:
            elapsed_s = (self._clock.real_s() - self._begun_real_s) * self._plan.time_scale
            self._view.show(
                scene.Scene(
                    act=self._act,
                    elapsed_s=elapsed_s,
                    **scene.look(self._eyes, self._name),
                    **dataclasses.asdict(self._progress),
                )
            )
            await self._clock.sleep_real(FRAME_REAL_S)
