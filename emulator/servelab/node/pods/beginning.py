"""Begins a pod's life on its node, or goes on with it where the API says that it was."""

import functools

from servelab.node.kubelet import life, resuming, state
from servelab.node.machines import machine
from servelab.node.pods import planning, podspec, starting
from servelab.node.rules import admission
from servelab.node.services import Services


def life_of(
    pod: podspec.Pod,
    plan: planning.Plan,
    node: machine.Machine,
    services: Services,
    rejection: admission.Rejection | None,
) -> life.PodLife:
    """``rejection`` says why the node does not admit it."""
    address = services.addresses.restore(pod.uid, resuming.known_ip(pod))
    for image, fact in plan.images.items():
        if fact.present and not node.host.images.present(image):
            node.host.images.add(image, fact.size_bytes or 0)
    gpu = next((each.gpu for each in plan.engines.values()), node.facts.gpu)
    around = state.Surroundings(
        node.host,
        address,
        plan.works,
        plan.behaviors,
        plan.images,
        rejection,
        {name: each.start for name, each in plan.engines.items()},
        gpu_memory_gib=gpu.driver_memory_mib / 1024,
        again=functools.partial(_again, node),
    )
    if resuming.begun(pod):
        return resuming.resume(pod, around, services.unix_s())
    return life.PodLife(pod, around)


def _again(node: machine.Machine, pod: podspec.Pod, container: str) -> starting.EngineStart | None:
    """What the node has kept makes another start quicker."""
    found = planning.again(pod, container, node.facts, node.host.images)
    if found is None:
        return None
    node.links.learn(found.links)
    return found.start
