"""The operator's own metrics, in a registry of their own."""

import prometheus_client as prometheus

from modelserve.api.keys import Key
from modelserve.decide.record import Decision

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24)


class Telemetry:
    """Counts what the operator does. Times are real seconds."""

    def __init__(self) -> None:
        self.registry = registry = prometheus.CollectorRegistry()
        self.reconciles = prometheus.Counter(
            "modelserve_operator_reconciles", "Reconciles by result.", ["result"], registry=registry
        )
        self.duration = prometheus.Histogram(
            "modelserve_operator_reconcile_seconds",
            "Duration.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.depth = prometheus.Gauge(
            "modelserve_operator_queue_depth", "Keys due or being worked on.", registry=registry
        )
        self.decisions = prometheus.Counter(
            "modelserve_operator_decisions",
            "Counts written, by reason.",
            ["reason"],
            registry=registry,
        )
        self.desired = prometheus.Gauge(
            "modelserve_desired_replicas",
            "Decided count.",
            ["namespace", "modelserve"],
            registry=registry,
        )
        self.ready = prometheus.Gauge(
            "modelserve_ready_replicas",
            "Ready replicas.",
            ["namespace", "modelserve"],
            registry=registry,
        )
        self.activation = prometheus.Histogram(
            "modelserve_activation_seconds",
            "From the first held request at zero to the written count.",
            buckets=_SECONDS,
            registry=registry,
        )
        self.status_writes = prometheus.Counter(
            "modelserve_operator_status_writes", "Writes of ModelServe status.", registry=registry
        )

    def reconciled(self, result: str, duration_real_s: float) -> None:
        """One reconcile ended: ``ok`` or ``error``."""
        self.reconciles.labels(result).inc()
        self.duration.observe(duration_real_s)

    def decided(self, key: Key, decision: Decision, ready: int) -> None:
        """What one model should have and has."""
        self.desired.labels(key.namespace, key.name).set(decision.desired)
        self.ready.labels(key.namespace, key.name).set(ready)

    def scaled(self, decision: Decision) -> None:
        """A count was written."""
        self.decisions.labels(str(decision.reason)).inc()

    def forget(self, key: Key) -> None:
        """A model is gone."""
        for gauge in (self.desired, self.ready):
            try:
                gauge.remove(key.namespace, key.name)
            except KeyError:
                continue
