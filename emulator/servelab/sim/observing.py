"""What an autoscaler sees of one simulated model, in the live operator's own terms."""

from modelserve.api import status
from modelserve.decide import coldstart, counters, gaps, nodefacts, observation
from modelserve.reconciling import memory
from servelab.sim import gateways
from servelab.sim.service import Service


class Observer:
    """Looks at one model, and remembers what was counted up to the last look."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._counters = counters.Counters(primed=True)
        self._measured: status.ColdStartParts | None = None
        self._predictions: dict[tuple[bool, str], coldstart.ColdStart] = {}
        self._known: observation.Parameters | None = None
        self._changes = 0
        self._idle = observation.NO_GAPS
        # By all that they depend on and that changes.
        self._parameters: dict[tuple[float, int, float], observation.Parameters] = {}

    def look(
        self, now_s: float, idle: gaps.Gaps = observation.NO_GAPS
    ) -> tuple[observation.Observation, observation.Parameters]:
        """Everything one decision looks at. Takes what was counted since the last look."""
        service = self._service
        service.catch_up(now_s)
        merged, self._counters = counters.merge(
            service.gateway.snapshots(now_s), gateways.NAMESPACE, service.name, self._counters
        )
        in_flight = merged.in_flight
        replicas = tuple(
            replica.observed(in_flight.get(uid, 0), now_s)
            for uid, replica in service.replicas.items()
        )
        self._measure()
        seen = observation.Observation(
            replicas=replicas,
            signal=merged.signal,
            live_count=service.count,
            written_count=service.count,
        )
        return seen, self.parameters(idle)

    def parameters(self, idle: gaps.Gaps = observation.NO_GAPS) -> observation.Parameters:
        """The rules' parameters as the spec, the catalogue and what was measured make them."""
        changes = self._service.place.nodes.changes
        if self._known is None or changes != self._changes or idle is not self._idle:
            self._changes, self._idle = changes, idle
            self._known = self._worked_out(idle)
        return self._known

    def _worked_out(self, idle: gaps.Gaps) -> observation.Parameters:
        service = self._service
        predicted = self._predicted()
        cold_start_s = coldstart.expected_s(predicted, self._measured)
        product = service.assessment.gpu.product_label
        room = service.place.nodes.room(product, service.gpus_each)
        scaling = service.spec.scaling
        cooldown_s = observation.cooldown_s(scaling.cooldown_seconds, cold_start_s, idle)
        key = (cold_start_s, room, cooldown_s)
        known = self._parameters.get(key)
        if known is None:
            if len(self._parameters) > 64:
                self._parameters.clear()
            known = self._parameters[key] = observation.Parameters.of(
                service.spec,
                slots=service.assessment.slots,
                cold_start_s=cold_start_s,
                service_s=service.assessment.service_s,
                gpus=observation.GpuRoom(replicas=room),
                predicted_s=predicted.total_s,
                idle=idle,
            )
        return known

    def _predicted(self) -> coldstart.ColdStart:
        """Of the next replica, on the node it most likely gets."""
        service = self._service
        assessed = service.assessment
        launch, gpu = assessed.launch, assessed.gpu
        nodes = service.place.nodes
        node = nodes.likeliest(gpu.product_label, service.gpus_each, launch.image)
        if node is None:
            return assessed.cold_start()
        present = launch.image in node.images
        key = present, node.pool
        known = self._predictions.get(key)
        if known is None:
            cache = nodefacts.CacheState(image_present=present)
            plan = coldstart.plan(launch, gpu, node.rates, cache)
            known = self._predictions[key] = coldstart.predict(plan)
        return known

    def _measure(self) -> None:
        """Take down the cold starts that are over since the last look."""
        for took in self._service.take_cold_starts():
            self._measured = memory.mean(self._measured, memory.parts(took))
            self._known = None
