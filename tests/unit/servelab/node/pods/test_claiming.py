"""Resource claims that a kubelet prepares, and those it does not."""

from typing import Any

import pytest

from modelserve import ports, testing
from servelab.node.pods import claiming

CLAIMS = ports.RESOURCE_CLAIMS


def pod(*told: dict[str, Any], **source: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"containers": [], "resourceClaims": [{"name": "x", **source}]},
        "status": {"resourceClaimStatuses": list(told)},
    }


async def cluster_with(reserved: str, owner: str = "u") -> testing.MemoryCluster:
    """A claim ``c`` that is reserved for the pod of that UID, and owned by another."""
    cluster = testing.MemoryCluster()
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": owner, "controller": True}]
    meta = {"name": "c", "ownerReferences": owners}
    for_pod = {"resource": "pods", "name": "p", "uid": reserved}
    status = {"reservedFor": [for_pod]}
    await cluster.create(CLAIMS, "default", {"metadata": meta, "spec": {}, "status": status})
    return cluster


async def test_a_claim_that_is_reserved_for_the_pod_is_prepared() -> None:
    cluster = await cluster_with("u")
    assert await claiming.refused(cluster, pod(resourceClaimName="c")) == ""


async def test_a_claim_that_is_reserved_for_another_pod_is_not() -> None:
    cluster = await cluster_with("another")
    uid = (await cluster.get(CLAIMS, "default", "c"))["metadata"]["uid"]
    said = await claiming.refused(cluster, pod(resourceClaimName="c"))
    assert said == f"pod p (u) is not allowed to use ResourceClaim c ({uid})"


async def test_a_claim_that_does_not_exist_is_told_as_the_api_server_does() -> None:
    said = await claiming.refused(testing.MemoryCluster(), pod(resourceClaimName="c"))
    assert said == 'fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found'


@pytest.mark.parametrize(
    ("told", "owner", "said"),
    [
        ([], "u", 'pod "default/p": ResourceClaim not created yet'),
        ([{"name": "x"}], "u", ""),
        ([{"name": "x", "resourceClaimName": "c"}], "u", ""),
        (
            [{"name": "x", "resourceClaimName": "c"}],
            "another",
            "ResourceClaim default/c was not created for Pod default/p (Pod is not owner)",
        ),
    ],
    ids=["not yet", "none needed", "its own", "not its own"],
)
async def test_a_claim_from_a_template_must_be_the_pods_own(
    told: list[dict[str, Any]], owner: str, said: str
) -> None:
    cluster = await cluster_with("u", owner)
    assert await claiming.refused(cluster, pod(*told, resourceClaimTemplateName="t")) == said
