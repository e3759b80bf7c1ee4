"""Who owns the replica count, from managedFields."""

from typing import Any

import pytest

from modelserve.render import replica_owner
from modelserve.render.replica_owner import Owner


def entry(manager: str, subresource: str = "", fields: str = "f:replicas") -> dict[str, Any]:
    found = {"manager": manager, "fieldsV1": {"f:spec": {fields: {}}}}
    return found | ({"subresource": subresource} if subresource else {})


def deployment(*entries: dict[str, Any], replicas: int = 2) -> dict[str, Any]:
    return {"metadata": {"managedFields": list(entries)}, "spec": {"replicas": replicas}}


MAIN = entry("modelserve")
SCALER = entry("modelserve-scaler", "scale")
KUBECTL = entry("kubectl", "scale")
OTHER_FIELD = entry("modelserve", fields="f:template")
STATUS = entry("kube-controller-manager", "status")


@pytest.mark.parametrize(
    ("entries", "owner"),
    [
        ((MAIN,), Owner.MAIN),
        ((SCALER, OTHER_FIELD, STATUS), Owner.SCALER),
        ((MAIN, SCALER), Owner.MAIN),
        ((KUBECTL, OTHER_FIELD), Owner.FOREIGN),
        ((SCALER, KUBECTL), Owner.FOREIGN),
        ((OTHER_FIELD,), Owner.NOBODY),
        ((), Owner.NOBODY),
    ],
    ids=["created", "handed-over", "both", "foreign", "shared", "nobody", "no-fields"],
)
def test_the_owner_is_read_from_the_managed_fields(
    entries: tuple[dict[str, Any], ...], owner: Owner
) -> None:
    assert replica_owner.replicas_owner(deployment(*entries)) is owner


def test_the_main_apply_carries_zero_at_creation_and_the_live_count_until_the_hand_over() -> None:
    assert replica_owner.replicas_to_apply(None) == 0
    assert replica_owner.replicas_to_apply(deployment(MAIN, replicas=3)) == 3
    assert replica_owner.replicas_to_apply(deployment(SCALER, replicas=3)) is None
    assert replica_owner.replicas_to_apply(deployment(KUBECTL, replicas=3)) is None


def test_foreign_managers_are_named() -> None:
    assert replica_owner.foreign_managers(deployment(SCALER, KUBECTL, MAIN)) == ("kubectl",)
