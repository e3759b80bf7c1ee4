"""The emulator's own metrics."""

import collections
from collections.abc import Collection, Iterable

import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from modelserve import ports
from modelserve.api import names
from servelab.node.machines import machine
from servelab.node.pods import runner

PHASES = ("Pending", "Running", "Succeeded", "Failed")

_LATE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Figures:
    """Metrics of one emulator process, in a registry of its own. Durations are real seconds."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._nodes = Gauge("servelab_nodes", "Emulated nodes.", ["pool"], registry=self._registry)
        self._pods = Gauge(
            "servelab_pods", "Pods on emulated nodes, by phase.", ["phase"], registry=self._registry
        )
        self._waiting = Gauge(
            "servelab_writes_waiting",
            "Pods and events that are still to be written to the API server.",
            registry=self._registry,
        )
        self._lease_late = Histogram(
            "servelab_lease_lateness_seconds",
            "How much later than due a node Lease was renewed.",
            buckets=_LATE_BUCKETS,
            registry=self._registry,
        )
        self._phase_late = Histogram(
            "servelab_phase_delay_seconds",
            "How much later than due a phase of a pod's start ended.",
            buckets=_LATE_BUCKETS,
            registry=self._registry,
        )
        self._step_late = Histogram(
            "servelab_step_delay_seconds",
            "How much later than due a step in a pod's life was taken.",
            buckets=_LATE_BUCKETS,
            registry=self._registry,
        )
        self._exits = Counter(
            "servelab_engine_exits", "Engines that ended by themselves.", registry=self._registry
        )

        kinds = (
            ("transfers", "Image pulls and weight reads under way, by kind."),
            ("transfer_left_bytes", "What they have still to move."),
            ("transfer_bytes_per_second", "What they move now, in emulated seconds."),
        )
        self._transfers = [
            Gauge(f"servelab_{name}", text, ["kind"], registry=self._registry)
            for name, text in kinds
        ]

    def lease_late(self, real_s: float) -> None:
        self._lease_late.observe(max(0.0, real_s))

    def late(self, real_s: float, phase: bool) -> None:
        """A step in a pod's life was late, which ended a phase of its start or did not."""
        self._step_late.observe(max(0.0, real_s))
        if phase:
            self._phase_late.observe(max(0.0, real_s))

    def engine_exited(self) -> None:
        self._exits.inc()

    def count(
        self,
        nodes: Iterable[ports.Object],
        played: Collection[machine.Machine],
        pods: Iterable[runner.PodRunner],
        now_s: float,
    ) -> None:
        """Set the gauges: of all nodes, those played here, and their pods, at emulated seconds."""
        there = tuple(pods)
        pools = (node["metadata"]["labels"].get(names.LABEL_POOL, "") for node in nodes)
        self._nodes.clear()
        for pool, count in collections.Counter(pools).items():
            self._nodes.labels(pool).set(count)
        phases = (each.pod.raw.get("status", {}).get("phase", "Pending") for each in there)
        counts = {**dict.fromkeys(PHASES, 0), **collections.Counter(phases)}
        for phase, count in counts.items():
            self._pods.labels(phase).set(count)
        events = sum(each.sink.waiting for each in played)
        self._waiting.set(events + sum(each.writing for each in there))
        self.moving(each for node in played for each in node.links.under_way(now_s))

    def moving(self, under_way: Iterable[tuple[str, float, float]]) -> None:
        """Transfers under way: kind (pull, load), bytes left, bytes per emulated second."""
        sums = {kind: [0.0, 0.0, 0.0] for kind in ("pull", "load")}
        for kind, left, rate in under_way:
            for place, amount in enumerate((1.0, left, rate)):
                sums[kind][place] += amount
        for kind, amounts in sums.items():
            for gauge, amount in zip(self._transfers, amounts, strict=True):
                gauge.labels(kind).set(amount)

    def render(self) -> bytes:
        """The text exposition."""
        return prometheus_client.generate_latest(self._registry)
