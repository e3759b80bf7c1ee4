"""What an autoscaler sees of one simulated model, in the live operator's own terms."""

from modelserve.api import status
from modelserve.decide import coldstart, counters, gaps, nodefacts, observation
from modelserve.reconciling import memory
from servelab.sim import gateways
from servelab.sim.service import Service

# What a cold start on a node depends on: its pool, and what it has.
_Look = tuple[str, nodefacts.CacheState]


class Observer:
    """Looks at one model, and remembers what was counted up to the last look."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._counters = counters.Counters(primed=True)
        self._measured: status.ColdStartParts | None = None
        self._predictions: dict[_Look, coldstart.ColdStart] = {}
        self._known: observation.Parameters | None = None
        self._changes = 0
        self._idle = observation.NO_GAPS
        # By all that they depend on and that changes.
        self._parameters: dict[tuple[float, ...], observation.Parameters] = {}

    def look(
        self, now_s: float, idle: gaps.Gaps = observation.NO_GAPS
    ) -> tuple[observation.Observation, observation.Parameters]:
        """Everything one decision looks at. Takes what was counted since the last look."""
        service = self._service
        service.deployment.catch_up(now_s)
        merged, self._counters = counters.merge(
            service.gateway.snapshots(now_s), gateways.NAMESPACE, service.name, self._counters
        )
        in_flight = merged.in_flight
        deployment = service.deployment
        replicas = [
            replica.observed(in_flight.get(uid, 0), now_s)
            for uid, replica in deployment.replicas.items()
        ]
        self._measure()
        count = deployment.count
        seen = observation.Observation(tuple(replicas), merged.signal, count, count)
        return seen, self.parameters(idle)

    def parameters(self, idle: gaps.Gaps = observation.NO_GAPS) -> observation.Parameters:
        """The rules' parameters as the spec, the catalogue and what was measured make them."""
        changes = self._service.place.nodes.changes
        if self._known is None or changes != self._changes or idle is not self._idle:
            self._changes, self._idle = changes, idle
            self._known = self._worked_out(idle)
        return self._known

    def _worked_out(self, idle: gaps.Gaps) -> observation.Parameters:
        service, nodes = self._service, self._service.place.nodes
        provision_s = self._provision_s()
        predicted = self._predicted(provision_s)
        cold_start_s = coldstart.expected_s(predicted, self._measured)
        room = nodes.room(service.deployment.wish)
        scaling = service.spec.scaling
        cooldown_s = observation.cooldown_s(scaling.cooldown_seconds, cold_start_s, idle)
        key = (cold_start_s, room, cooldown_s, provision_s)
        known = self._parameters.get(key)
        if known is None:
            if len(self._parameters) > 64:
                self._parameters.clear()
            known = self._parameters[key] = observation.Parameters.of(
                service.spec,
                slots=service.assessment.slots,
                cold_start_s=cold_start_s,
                service_s=service.assessment.service_s,
                gpus=observation.GpuRoom(room, provision_s > 0, provision_s),
                predicted_s=predicted.total_s,
                idle=idle,
            )
        return known

    def _provision_s(self) -> float:
        """How long another node takes; while there is none, the spec says, or what was measured."""
        told_s = self._service.place.pools.provisioning_s(self._service.deployment.wish)
        given_s = self._service.spec.cold_start.provisioning_seconds
        if told_s is not None:
            return told_s
        if given_s is not None:
            return given_s
        return self._measured.provisioning_seconds if self._measured is not None else 0.0

    def _predicted(self, provision_s: float) -> coldstart.ColdStart:
        """Of the next replica, on the node it most likely gets, or on one that has to come."""
        service = self._service
        assessed, deployment = service.assessment, service.deployment
        recipe, wish = deployment.recipe, deployment.wish
        node = service.place.nodes.likeliest(wish, recipe.image)
        if node is None or not node.advertised:
            return assessed.cold_start(provisioning_s=provision_s)
        if provision_s and node.free < wish.gpus:
            annotations = service.place.pools.annotations(node.pool)
            return assessed.cold_start(annotations, provisioning_s=provision_s)
        look = node.pool, recipe.cache(node)
        known = self._predictions.get(look)
        if known is None:
            known = self._predictions[look] = coldstart.predict(recipe.plan(node, look[1]))
        return known

    def _measure(self) -> None:
        """Take down the cold starts that are over since the last look."""
        for took in self._service.deployment.take_cold_starts():
            self._measured = memory.mean(self._measured, memory.parts(took))
            self._known = None
