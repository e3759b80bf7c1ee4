"""Who may write a Deployment's ``spec.replicas``, read from its managedFields.

The main field manager creates the Deployment with ``replicas: 0`` (left out, the server would make
it 1). From then on the scaler owns the field through ``/scale``: its first write is forced, since
it takes the field from the main manager. The main manager leaves ``replicas`` out only once
somebody else owns it: a field that its only owner no longer applies falls back to 1.
"""

from collections.abc import Iterator
from enum import StrEnum

from modelserve import ports
from modelserve.api import names


class Owner(StrEnum):
    """Whose ``spec.replicas`` it is."""

    SCALER = "Scaler"  # we, through /scale: the steady state
    MAIN = "Main"  # we, at creation: the hand-over to the scaler is still to come
    FOREIGN = "Foreign"  # somebody else
    NOBODY = "Nobody"


def replicas_owner(deployment: ports.Object) -> Owner:
    """The owner of ``spec.replicas``. Shared with us, it is ours: MAIN before SCALER."""
    owners = set(_owners(deployment))
    if names.MANAGER in owners:
        return Owner.MAIN
    if not owners:
        return Owner.NOBODY
    return Owner.SCALER if owners == {names.SCALER} else Owner.FOREIGN


def is_to_be_taken(deployment: ports.Object) -> bool:
    """Whether the scaler still has to take the field over: right after creation, or unowned."""
    return replicas_owner(deployment) in (Owner.MAIN, Owner.NOBODY)


def foreign_managers(deployment: ports.Object) -> tuple[str, ...]:
    """The field managers besides us that own ``spec.replicas``."""
    ours = {names.MANAGER, names.SCALER}
    return tuple(sorted({manager for manager in _owners(deployment) if manager not in ours}))


def replicas_to_apply(deployment: ports.Object | None) -> int | None:
    """What the main manager's apply must say of ``replicas``; None: leave it out."""
    if deployment is None:
        return 0
    if replicas_owner(deployment) is Owner.MAIN:
        return live_replicas(deployment)
    return None


def live_replicas(deployment: ports.Object) -> int:
    """``spec.replicas``, which the server makes 1 where nobody set it."""
    return int(deployment.get("spec", {}).get("replicas", 1))


def _owners(deployment: ports.Object) -> Iterator[str]:
    for entry in deployment["metadata"].get("managedFields", ()):
        if entry.get("subresource") == "status":
            continue
        if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {}):
            yield str(entry.get("manager", ""))
