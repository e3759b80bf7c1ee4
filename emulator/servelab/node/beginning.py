"""Begins a pod's life on its node, or goes on with it where the API says that it was."""

from collections.abc import Callable

from servelab.node import admission, machine, planning, podspec, starting
from servelab.node.kubelet import life, resuming, state
from servelab.node.services import Services


def life_of(
    pod: podspec.Pod,
    plan: planning.Plan,
    node: machine.Machine,
    services: Services,
    rejection: admission.Rejection | None,
    again: Callable[[str], starting.EngineStart | None],
) -> life.PodLife:
    """``rejection`` says why the node does not admit it; ``again`` how an engine starts anew."""
    address = services.addresses.restore(pod.uid, resuming.known_ip(pod))
    for image, fact in plan.images.items():
        if fact.present and not node.host.images.present(image):
            node.host.images.add(image, fact.size_bytes or 0)
    around = state.Surroundings(
        node.host,
        address,
        plan.works,
        plan.behaviors,
        plan.images,
        rejection,
        {name: each.start for name, each in plan.engines.items()},
        gpu_memory_gib=node.facts.gpu.driver_memory_mib / 1024,
        again=again,
    )
    if resuming.begun(pod):
        return resuming.resume(pod, around, services.unix_s())
    return life.PodLife(pod, around)
