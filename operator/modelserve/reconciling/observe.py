"""From what is known of the cluster, the gateways and the engines to one Observation."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from modelserve import ports
from modelserve.api import names, pods, timestamps, wire
from modelserve.api import spec as specs
from modelserve.api.keys import Key
from modelserve.catalog import images
from modelserve.decide import coldstart, counters, nodefacts, observation, prediction
from modelserve.decide.observation import ReplicaState
from modelserve.reconciling import sightings
from modelserve.reconciling.memory import Memory
from modelserve.reconciling.sightings import Now
from modelserve.reconciling.world import Uid, World
from modelserve.render import replica_owner, scheduling


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a ModelServe: for the decision, and what the report needs besides."""

    observed: observation.Observation
    parameters: observation.Parameters
    predicted: coldstart.ColdStart  # of the next replica
    pods: Mapping[Uid, ports.Object]
    gateways: tuple[ports.GatewayView, ...]
    silent_gateways: tuple[str, ...]  # of each live one that tells nothing, why
    most_free_gpus: int  # on one node
    pool_nodes: int


@dataclass(frozen=True, slots=True)
class Sources:
    """Where observations come from."""

    world: World
    demand: ports.DemandSource
    metrics: ports.MetricSource


def look(
    sources: Sources,
    key: Key,
    memory: Memory,
    spec: specs.ModelServeSpec,
    assessment: prediction.Assessment,
    now: Now,
) -> Seen:
    """Look at everything. Takes what gateways counted since the last look into ``memory``."""
    world = sources.world
    gateways = tuple(sources.demand.gateways())
    snapshots = [view.snapshot for view in gateways]
    merged, memory.counters = counters.merge(snapshots, key.namespace, key.name, memory.counters)
    found = {
        uid: pod
        for uid, pod in world.pods_of(key).items()
        if not pods.is_over(pod) or pod["metadata"].get("deletionTimestamp")
    }
    gpu = assessment.gpu
    wanted = scheduling.render(spec, gpu.product_label, gpu.resource_name)
    nodes = world.nodes_for({"spec": wanted})
    provision_s = _provision_s(nodes, memory, spec)
    replicas = _replicas(sources, found, memory, merged, assessment, provision_s, now)
    free = world.free_gpus(nodes, gpu.resource_name)
    predicted = _next_prediction(nodes, assessment, free, spec.gpu.tensor_parallel, provision_s)
    deployment = world.deployments.get(key)
    return Seen(
        observed=observation.Observation(
            replicas=tuple(sorted(replicas, key=lambda r: (r.created_s, r.name))),
            signal=merged.signal,
            live_count=replica_owner.live_replicas(deployment) if deployment else 0,
            written_count=written_count(deployment, memory),
            rollout_in_progress=rollout_in_progress(deployment),
            wake=_wakes(world.modelserve(key), memory),
            awake_until_s=_awake_until_s(world.modelserve(key), now),
            fence_retry_s=_fence_retry_s(memory, now),
        ),
        parameters=_parameters(spec, assessment, memory, predicted, free, provision_s, now),
        predicted=predicted,
        pods=found,
        gateways=gateways,
        silent_gateways=tuple(sources.demand.troubles()),
        most_free_gpus=max(free.values(), default=0),
        pool_nodes=sum(1 for _ in world.nodes_with(gpu.product_label)),
    )


def _replicas(
    sources: Sources,
    found: Mapping[Uid, ports.Object],
    memory: Memory,
    merged: counters.Merged,
    assessment: prediction.Assessment,
    provision_s: float,
    now: Now,
) -> list[observation.Replica]:
    """One by one, each beside what was seen of it before; who is gone is forgotten."""
    replicas = []
    for uid, pod in found.items():
        known, told = memory.sightings.get(uid), uid in merged.admitted
        state = sightings.state_of(pod, sightings.is_admitted(known, told, now))
        away = sources.world.is_away(pod)
        seen = sightings.look(known, pod, state, now, memory.looked_s, away=away)
        seen.admitted_real_s = now.real_s if told else seen.admitted_real_s
        memory.sightings[uid] = seen
        if state is ReplicaState.UNSCHEDULABLE:
            seen.expected_node_s = max(seen.expected_node_s, provision_s)
        _predict(sources.world, seen, pod, assessment)
        in_flight = merged.in_flight.get(uid, 0)
        replicas.append(_replica(sources.metrics, uid, pod, state, seen, in_flight, now))
    memory.looked_s = now.emulated_s
    for uid in memory.sightings.keys() - found.keys():
        del memory.sightings[uid]
    return replicas


def written_count(deployment: ports.Object | None, memory: Memory) -> int | None:
    """The last count we wrote. As long as the field is ours, that is the live one.

    So a crash between the write and the status leaves no doubt. A field somebody took right after
    creation was 0 when it was ours.
    """
    if deployment is None:
        return None
    if replica_owner.replicas_owner(deployment) is not replica_owner.Owner.FOREIGN:
        return replica_owner.live_replicas(deployment)
    return memory.written_count if memory.written_count is not None else 0


def rollout_in_progress(deployment: ports.Object | None) -> bool:
    """Whether pods of an older template are still there, as far as the controller has told."""
    if deployment is None:
        return False
    status = deployment.get("status", {})
    updated, total = status.get("updatedReplicas", 0), status.get("replicas", 0)
    return bool(updated < total)


def _replica(
    metrics: ports.MetricSource,
    uid: Uid,
    pod: ports.Object,
    state: ReplicaState,
    seen: sightings.Sighting,
    in_flight: int,
    now: Now,
) -> observation.Replica:
    sample = metrics.sample(uid)
    if sample is not None and now.real_s - sample.at_real_s > wire.SCRAPE_STALE_REAL_S:
        sample = None
    starting = state is ReplicaState.STARTING
    return observation.Replica(
        uid=uid,
        name=pod["metadata"]["name"],
        state=state,
        created_s=seen.created_s,
        node=pod["spec"].get("nodeName") or "",
        started_s=seen.started_s,
        ready_since_s=seen.ready_since_s,
        expected_ready_s=sightings.expected_ready_s(pod, seen, now) if starting else None,
        # A bound replica waits for no node any more.
        predicted_s=seen.predicted.total_s - seen.predicted.provisioning_s
        if seen.predicted
        else None,
        unschedulable_since_s=seen.unschedulable_since_s,
        in_flight=in_flight,
        waiting=sample.waiting if sample else None,
        running=sample.running if sample else None,
        deletion_cost=pods.deletion_cost(pod),
        away=seen.away,
    )


def _predict(
    world: World, seen: sightings.Sighting, pod: ports.Object, assessment: prediction.Assessment
) -> None:
    """Once, when the pod is first seen on its node: what is cached then is what counts.

    How long a node was to take counts as was thought while the pod waited for one.
    """
    node = world.nodes.get(pod["spec"].get("nodeName") or "")
    if seen.predicted is None and node is not None:
        found = _on_node(node, assessment)
        seen.predicted = replace(found, provisioning_s=seen.expected_node_s)


def _on_node(node: ports.Object, assessment: prediction.Assessment) -> coldstart.ColdStart:
    annotations = node["metadata"].get("annotations") or {}
    listed = node.get("status", {}).get("images") or ()
    return assessment.cold_start(annotations, has_image(node, assessment.launch.image), listed)


def has_image(node: ports.Object, image: str) -> bool:
    """Whether the kubelet lists the image; containerd has it list full names."""
    wanted = {image, images.canonical(image)}
    listed = (entry.get("names") or () for entry in node.get("status", {}).get("images") or ())
    return any(not wanted.isdisjoint(found) for found in listed)


def _provision_s(
    nodes: Mapping[str, ports.Object], memory: Memory, spec: specs.ModelServeSpec
) -> float:
    """How long another node for such pods takes; 0 where none would come.

    Nodes of a group that may grow say so. While there is none, the spec says, or what was measured.
    """
    if nodes:
        said = (node["metadata"].get("annotations") or {} for node in nodes.values())
        return max(nodefacts.provisioning_s(annotations) for annotations in said)
    if spec.cold_start.provisioning_seconds is not None:
        return spec.cold_start.provisioning_seconds
    measured = memory.measured()
    return measured.provisioning_seconds if measured is not None else 0.0


def _next_prediction(
    nodes: Mapping[str, ports.Object],
    assessment: prediction.Assessment,
    free: Mapping[str, int],
    gpus: int,
    provision_s: float,
) -> coldstart.ColdStart:
    """On the node the scheduler most likely takes: room first, then the image, then most room.

    If none has room and another can come, on that one, which is like the others but empty.
    """
    ranked = [
        (
            free.get(name, 0) < gpus,
            not has_image(node, assessment.launch.image),
            -free.get(name, 0),
            name,
        )
        for name, node in nodes.items()
    ]
    if not ranked:
        return assessment.cold_start(provisioning_s=provision_s)
    best = min(ranked)
    node = nodes[best[3]]
    if best[0] and provision_s:
        found = nodefacts.without_caches(node["metadata"].get("annotations") or {})
        return assessment.cold_start(found, provisioning_s=provision_s)
    return _on_node(node, assessment)


def _parameters(
    spec: specs.ModelServeSpec,
    assessment: prediction.Assessment,
    memory: Memory,
    predicted: coldstart.ColdStart,
    free: Mapping[str, int],
    provision_s: float,
    now: Now,
) -> observation.Parameters:
    room = sum(gpus // spec.gpu.tensor_parallel for gpus in free.values())
    return observation.Parameters.of(
        spec,
        slots=assessment.slots,
        cold_start_s=coldstart.expected_s(predicted, memory.measured()),
        service_s=assessment.service_s,
        gpus=observation.GpuRoom(room, can_grow=provision_s > 0, provision_s=provision_s),
        time_scale=now.scale,
        predicted_s=predicted.total_s,
        idle=memory.scaler.known.idle,
    )


def _wakes(modelserve: ports.Object, memory: Memory) -> bool:
    value = (modelserve["metadata"].get("annotations") or {}).get(names.WAKE)
    return value is not None and value != memory.wake_seen


def _awake_until_s(modelserve: ports.Object, now: Now) -> float | None:
    annotations = modelserve["metadata"].get("annotations") or {}
    wall_s = timestamps.parse_if_any(annotations.get(names.AWAKE_UNTIL))
    if wall_s is None or wall_s <= now.wall_s:
        return None
    return now.emulated_s + (wall_s - now.wall_s) * now.scale


def _fence_retry_s(memory: Memory, now: Now) -> float | None:
    retry_real_s = memory.settle.retry_real_s
    if retry_real_s is None or retry_real_s <= now.real_s:
        return None
    return now.emulated_s + (retry_real_s - now.real_s) * now.scale


def held_since_real_s(seen: Seen, key: Key) -> float | None:
    """The real instant at which the oldest held request came, as the gateways tell it."""
    oldest = [
        view.at_real_s - model.oldest_held_s
        for view in seen.gateways
        for model in view.snapshot.models
        if (model.namespace, model.name) == (key.namespace, key.name) and model.held
    ]
    return min(oldest, default=None)
