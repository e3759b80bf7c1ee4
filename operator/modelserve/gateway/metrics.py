"""The gateway's own metrics, in a registry of their own; gauges are read when they are scraped.

Every ModelServe has its series from the start, at zero replicas too: a queue gauge that vanishes
with the last replica would keep an autoscaler that reads it from waking the model.
"""

from collections.abc import Iterator

import prometheus_client
from prometheus_client import core, exposition, registry

from modelserve.api.keys import Key
from modelserve.decide import holding
from modelserve.gateway import dispatch

_LABELS = ("namespace", "modelserve")
_WAITS = (0.005, 0.05, 0.25, 1, 2.5, 5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 1200)
_FIRST_BYTES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_OVERHEADS = (0.00025, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5)

CONTENT_TYPE = exposition.CONTENT_TYPE_PLAIN_0_0_4


class _Live(registry.Collector):
    """What is held and in flight at this moment."""

    def __init__(self, dispatcher: dispatch.Dispatcher) -> None:
        self._dispatcher = dispatcher

    def collect(self) -> Iterator[core.Metric]:
        held = core.GaugeMetricFamily(
            "modelserve_gateway_held_requests", "Requests held now.", labels=_LABELS
        )
        held_bytes = core.GaugeMetricFamily(
            "modelserve_gateway_held_bytes", "Bytes of held requests' bodies.", labels=_LABELS
        )
        in_flight = core.GaugeMetricFamily(
            "modelserve_gateway_in_flight_requests", "Requests at engines now.", labels=_LABELS
        )
        for key, machine in self._dispatcher.items():
            if machine.closed is holding.Refusal.DELETED and not machine.in_flight:
                continue
            labels = (key.namespace, key.name)
            held.add_metric(labels, machine.held)
            held_bytes.add_metric(labels, machine.held_bytes)
            in_flight.add_metric(labels, machine.in_flight)
        yield from (held, held_bytes, in_flight)


class Metrics:
    """Counters and histograms by ModelServe; all durations in real seconds."""

    def __init__(self, dispatcher: dispatch.Dispatcher) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self.registry.register(_Live(dispatcher))
        self.requests = prometheus_client.Counter(
            "modelserve_gateway_requests",
            "Requests ended, by HTTP status; 499: the client left first.",
            (*_LABELS, "code"),
            registry=self.registry,
        )
        self.refused = prometheus_client.Counter(
            "modelserve_gateway_refused_requests",
            "Requests the hold turned away, by reason.",
            (*_LABELS, "reason"),
            registry=self.registry,
        )
        self.retries = prometheus_client.Counter(
            "modelserve_gateway_retries",
            "Requests sent again after a refused or reset connection.",
            _LABELS,
            registry=self.registry,
        )
        self.hold_duration = self._histogram(
            "hold_duration_seconds", "Time that requests sent to an engine were held.", _WAITS
        )
        self.first_byte = self._histogram(
            "time_to_first_byte_seconds", "Arrival to first byte of the answer.", _FIRST_BYTES
        )
        self.overhead = self._histogram(
            "overhead_seconds",
            "What this gateway adds until the first byte, holding left out.",
            _OVERHEADS,
        )

    def remove(self, key: Key) -> None:
        """Forget a deleted ModelServe's series."""
        labels = {"namespace": key.namespace, "modelserve": key.name}
        for counter in (self.requests, self.refused, self.retries):
            counter.remove_by_labels(labels)
        for histogram in (self.hold_duration, self.first_byte, self.overhead):
            histogram.remove_by_labels(labels)

    def render(self) -> bytes:
        """The text exposition."""
        return exposition.generate_latest(self.registry)

    def _histogram(
        self, name: str, documentation: str, buckets: tuple[float, ...]
    ) -> prometheus_client.Histogram:
        return prometheus_client.Histogram(
            f"modelserve_gateway_{name}",
            documentation,
            _LABELS,
            buckets=buckets,
            registry=self.registry,
        )
