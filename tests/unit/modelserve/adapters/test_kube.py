"""Requests as they leave, and answers as they become objects or errors."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import kube
from modelserve.testing import scripted

STATUS = {"kind": "Status", "message": 'pods "a" is special', "reason": "Special"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.Invalid),
        (401, errors.Forbidden),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (410, errors.Expired),
        (422, errors.Invalid),
        (429, errors.Unavailable),
        (500, errors.Unavailable),
        (503, errors.Unavailable),
    ],
)
async def test_each_status_becomes_its_error_with_the_servers_words(
    cluster: kube.KubeCluster,
    server: scripted.ScriptedServer,
    status: int,
    kind: type[errors.ClusterError],
) -> None:
    server.script = [scripted.respond(status, STATUS)] * 2
    with pytest.raises(kind, match='pods "a" is special') as caught:
        await cluster.get(ports.PODS, "default", "a")
    assert (caught.value.status, caught.value.reason) == (status, "Special")


async def test_retry_after_comes_along(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [scripted.respond(429, STATUS, {"Retry-After": "3"})]
    with pytest.raises(errors.Unavailable) as caught:
        await cluster.get(ports.PODS, "default", "a")
    assert caught.value.retry_after_s == 3.0


async def test_an_answer_that_is_no_json_is_unavailable(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [scripted.respond(200, None, raw=b"<html>"), scripted.respond(502, 0, raw=b"x")]
    for _ in range(2):
        with pytest.raises(errors.Unavailable):
            await cluster.get(ports.PODS, "default", "a")


@pytest.mark.parametrize(
    "message",
    [
        "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .dat: field not ...",
        "failed to convert new object (default/a; apps/v1, Kind=Deployment) to proper version: "
        "quantities must match the regular expression '^([+-]?[0-9.]+)…$'",
    ],
    ids=["a field that the schema lacks", "a quantity that is none"],
)
async def test_what_the_schema_does_not_take_is_invalid(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer, message: str
) -> None:
    server.script = [scripted.respond(500, {"message": message})]
    with pytest.raises(errors.Invalid):
        await cluster.apply(ports.CONFIG_MAPS, "default", "a", {"dat": {}}, manager="m")


async def test_an_apply_says_who_applies_and_what(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [scripted.respond(200, {})]
    await cluster.apply(
        ports.DEPLOYMENTS,
        "default",
        "a",
        {"spec": {"replicas": 2}},
        manager="scaler",
        force=True,
        subresource="scale",
    )
    [request] = server.requests
    assert request.path == "/apis/apps/v1/namespaces/default/deployments/a/scale"
    assert dict(request.query) == {
        "fieldManager": "scaler",
        "force": "true",
        "fieldValidation": "Strict",
    }
    assert request.headers["Content-Type"] == "application/apply-patch+yaml"
    assert request.headers["User-Agent"].startswith("modelserve/")
    assert request.headers["Authorization"] == "Bearer secret"
    assert json.loads(server.bodies[0]) == {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": 2},
    }


async def test_a_deletion_carries_grace_uid_and_version(
    cluster: kube.KubeCluster, server: scripted.ScriptedServer
) -> None:
    server.script = [scripted.respond(200, {})]
    await cluster.delete(ports.PODS, "default", "a", grace_s=0, uid="u", resource_version="7")
    options = json.loads(server.bodies[0])
    assert options["gracePeriodSeconds"] == 0
    assert options["preconditions"] == {"uid": "u", "resourceVersion": "7"}


async def test_a_token_that_was_rotated_is_read_again(
    connect: Callable[[str], Awaitable[kube.KubeCluster]],
    server: scripted.ScriptedServer,
    tmp_path: Path,
) -> None:
    cluster = await connect(server.kubeconfig)
    (tmp_path / "kubeconfig").write_text(server.kubeconfig.replace("secret", "fresh"))
    server.script = [scripted.respond(401, STATUS), scripted.respond(200, {"kind": "Pod"})]
    assert await cluster.get(ports.PODS, "default", "a") == {"kind": "Pod"}
    sent = [request.headers["Authorization"] for request in server.requests]
    assert sent == ["Bearer secret", "Bearer fresh"]


async def test_nobody_there_is_unavailable(
    connect: Callable[[str], Awaitable[kube.KubeCluster]],
) -> None:
    async with scripted.ScriptedServer() as server:
        kubeconfig = server.kubeconfig
    cluster = await connect(kubeconfig)
    with pytest.raises(errors.Unavailable, match="GET /api/v1/nodes/a"):
        await cluster.get(ports.NODES, None, "a")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "a: b", "current-context: c\ncontexts: []\nclusters: []\nusers: []"],
    ids=["empty", "a list", "no YAML", "no kubeconfig", "no such context"],
)
async def test_a_kubeconfig_that_makes_no_sense_is_one_sentence(
    connect: Callable[[str], Awaitable[kube.KubeCluster]], text: str
) -> None:
    with pytest.raises(errors.InputError, match="kubeconfig") as caught:
        await connect(text)
    assert "\n" not in str(caught.value)
    assert "NoneType" not in str(caught.value), "Python's own words are nobody's help"


async def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(errors.InputError, match=r"there is no kubeconfig file .*absent"):
        await kube.KubeCluster.connect(str(tmp_path / "absent"))


async def test_a_kubeconfig_that_is_being_replaced_keeps_the_old_token(
    connect: Callable[[str], Awaitable[kube.KubeCluster]],
    server: scripted.ScriptedServer,
    tmp_path: Path,
) -> None:
    cluster = await connect(server.kubeconfig)
    (tmp_path / "kubeconfig").unlink()
    server.script = [scripted.respond(401, STATUS)] * 2
    with pytest.raises(errors.Forbidden):
        await cluster.get(ports.PODS, "default", "a")


async def test_a_watch_that_is_refused_reads_the_token_again(
    connect: Callable[[str], Awaitable[kube.KubeCluster]],
    server: scripted.ScriptedServer,
    tmp_path: Path,
) -> None:
    cluster = await connect(server.kubeconfig)
    listing = scripted.respond(200, {"metadata": {"resourceVersion": "5"}, "items": []})
    told = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "6"}}}
    server.script = [listing, scripted.respond(401, STATUS), scripted.stream(told)]
    events = cluster.watch(ports.PODS, "default")
    await anext(events)
    (tmp_path / "kubeconfig").write_text(server.kubeconfig.replace("secret", "fresh"))
    await anext(events)
    assert server.requests[-1].headers["Authorization"] == "Bearer fresh"
    await events.aclose()


async def test_a_watch_whose_head_does_not_come_is_given_up_as_soon_as_any_request(
    server: scripted.ScriptedServer, tmp_path: Path
) -> None:
    (tmp_path / "kubeconfig").write_text(server.kubeconfig)
    listing = scripted.respond(200, {"metadata": {"resourceVersion": "5"}, "items": []})
    told = {"type": "ADDED", "object": {"metadata": {"name": "a", "resourceVersion": "6"}}}
    server.script = [listing, scripted.hang(), scripted.stream(told, then="silence")]
    async with await kube.KubeCluster.connect(
        str(tmp_path / "kubeconfig"), answer_real_s=0.1
    ) as cluster:
        events = cluster.watch(ports.PODS, "default")
        await anext(events)
        async with asyncio.timeout(20):
            assert (await anext(events)).object["metadata"]["name"] == "a"
        await events.aclose()


async def test_a_pod_uses_its_service_account_and_reads_the_token_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    with pytest.raises(errors.InputError, match="the pod's service account"):
        await kube.KubeCluster.connect(None)


def test_no_generated_model_is_imported() -> None:
    loaded: list[Any] = [
        m for m in __import__("sys").modules if m.startswith("kubernetes.aio.client.models.")
    ]
    assert len(loaded) < 5
