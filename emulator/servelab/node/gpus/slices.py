"""Slices of GPUs (MIG): those a pool cuts, and what a node and a container see of them (pure)."""

from collections.abc import Mapping
from typing import Any

from modelserve import errors
from modelserve.api import pool
from modelserve.catalog import gpus, mig

# What containers ask for where slices of several profiles have resources of their own.
RESOURCE = "nvidia.com/mig-"


def of_pool(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> Mapping[mig.Profile, int]:
    """Slices of each GPU by profile; empty without MIG. Raises InputError with the mend."""
    if spec.mig is None:
        return {}
    known = mig.profiles(gpu)
    if not known:
        raise errors.InputError(f"spec.mig: {gpu.product_label} cannot be cut; leave mig out")
    wanted = spec.mig.profiles
    unknown = next((name for name in wanted if name not in known), None)
    if unknown is not None:
        raise errors.InputError(
            f"spec.mig.profiles: {gpu.product_label} has no profile {unknown!r}; "
            f"it has {', '.join(known)}"
        )
    if spec.mig.strategy == "single" and len(wanted) > 1:
        raise errors.InputError(
            "spec.mig: strategy single means one profile for all slices; give one, or mixed"
        )
    found = {known[name]: count for name, count in wanted.items()}
    compute = sum(profile.compute * count for profile, count in found.items())
    memory = sum(profile.memory * count for profile, count in found.items())
    if compute > mig.COMPUTE_SLICES or memory > mig.MEMORY_SLICES:
        raise errors.InputError(
            f"spec.mig.profiles: {compute} of {mig.COMPUTE_SLICES} compute and {memory} of "
            f"{mig.MEMORY_SLICES} memory slices do not fit one GPU; ask for fewer"
        )
    return found


def check(spec: pool.GPUPoolSpec, gpu: gpus.Gpu) -> None:
    """Raises InputError for slices without the GPUs they are of, or of GPUs that have none."""
    if gpu.mig_profile:
        raise errors.InputError(
            f"spec.gpu: {spec.gpu} is a slice; name the whole GPU, and cut it with "
            f"spec.mig.profiles: {{{gpu.mig_profile}: …}}"
        )
    of_pool(spec, gpu)


def single(spec: pool.GPUPoolSpec) -> str:
    """The profile of all slices, where those are the node's GPUs; empty where they are not."""
    one = spec.mig is not None and spec.mig.strategy == "single"
    return next(iter(spec.mig.profiles)) if spec.mig is not None and one else ""


def resource(spec: pool.GPUPoolSpec, gpu: gpus.Gpu, profile: mig.Profile) -> str:
    """As what a container asks for a slice."""
    return gpu.resource_name if single(spec) else f"{RESOURCE}{profile.name}"


def found_by(container: Mapping[str, Any], gpu: gpus.Gpu, profile: str) -> gpus.Gpu:
    """The GPU that a container's process finds: the node's, or the slice that it asks for.

    ``profile``: whose slices the node's GPUs are (``single``). A profile the GPU has not is no
    slice: no device plugin hands it out.
    """
    asked = _asked(container)
    named = (name.removeprefix(RESOURCE) for name in asked if name.startswith(RESOURCE))
    wanted = next(named, profile if gpu.resource_name in asked else "")
    return gpus.cut(gpu, wanted) if wanted in mig.profiles(gpu) else gpu


def seen_by(container: Mapping[str, Any], gpu: gpus.Gpu) -> int | None:
    """How many GPUs such a process finds; None where the container's resources do not say.

    ``gpu`` is what it finds. Of slices it sees the first alone. vLLM would count the GPUs that
    they are of; those of a pod are of one as long as that has any left.
    """
    asked = _asked(container)
    if gpu.mig_profile:
        return 1
    told = str(asked.get(gpu.resource_name, ""))
    return int(told) if told.isdecimal() and int(told) else None


def _asked(container: Mapping[str, Any]) -> Mapping[str, Any]:
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}


def attributes(profile: mig.Profile, gpu: gpus.Gpu) -> Mapping[str, int]:
    """What GPU feature discovery tells of a slice, by the end of its label."""
    whole = profile.compute == mig.COMPUTE_SLICES
    newer = gpu.family != "ampere"
    decoders = profile.compute if newer else {1: 0, 2: 1, 3: 2, 4: 2, 7: 5}[profile.compute]
    return {
        "memory": mig.memory_mib(gpu, profile),
        "multiprocessors": mig.processors(gpu, profile),
        "slices.gi": profile.compute,
        "slices.ci": profile.compute,
        "engines.copy": profile.memory if whole and newer else profile.compute,
        "engines.decoder": decoders,
        "engines.encoder": 0,
        "engines.jpeg": profile.compute if newer else int(whole),
        "engines.ofa": int(whole),
    }
