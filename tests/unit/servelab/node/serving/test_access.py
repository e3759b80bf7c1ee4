"""Who may use the kubelet API."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from aiohttp import test_utils

from modelserve import errors, ports
from servelab.node.serving import access, inspecting, server

TOKEN = {"Authorization": "Bearer good"}


@dataclass
class ApiServer:
    """Knows one token, and who may do what on nodes: (user, verb, subresource, node)."""

    allowed: set[tuple[str, str, str, str]] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    down: bool = False

    async def create(self, resource: ports.Resource, namespace: None, body: Any) -> ports.Object:
        self.asked.append(resource.kind)
        if self.down:
            raise errors.ClusterError("the API server is away")
        spec = body["spec"]
        if resource is access.TOKEN_REVIEWS:
            user = {"username": "anna", "uid": "1", "groups": ["people"]}
            good = spec["token"] == "good"
            return {"status": {"authenticated": good, **({"user": user} if good else {})}}
        what = spec["resourceAttributes"]
        key = (spec["user"], what["verb"], what["subresource"], what["name"])
        return {"status": {"allowed": key in self.allowed}}


@dataclass
class Clock:
    """Real seconds that pass when told."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def api() -> ApiServer:
    return ApiServer()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def secured(
    host: Any, api: ApiServer, clock: Clock
) -> AsyncIterator[test_utils.TestClient[Any, Any]]:
    rules = access.Access(cast(ports.Cluster, api), clock)
    kubelet = server.KubeletServer(inspecting.Inspector(host), server.Options(rules))
    async with test_utils.TestClient(test_utils.TestServer(kubelet.app)) as found:
        yield found


async def ask(client: Any, path: str, **headers: str) -> tuple[int, str]:
    answer = await client.get(path, headers={**TOKEN, **headers})
    return answer.status, await answer.text()


@pytest.mark.parametrize("header", ["", "Bearer bad", "Basic good", "Bearer"])
async def test_strangers_are_unauthorized(secured: Any, header: str) -> None:
    assert await ask(secured, "/healthz", Authorization=header) == (401, "Unauthorized")


async def test_who_may_not_is_told_what_he_lacks(secured: Any) -> None:
    text = "Forbidden (user=anna, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    assert await ask(secured, "/pods") == (403, text)


@pytest.mark.parametrize("subresource", ["healthz", "proxy"])
async def test_either_subresource_is_enough(secured: Any, api: ApiServer, subresource: str) -> None:
    api.allowed = {("anna", "get", subresource, "dgx-0")}
    assert await ask(secured, "/healthz") == (200, "ok")


async def test_who_may_read_may_not_enter(secured: Any, api: ApiServer) -> None:
    api.allowed = {("anna", "get", "proxy", "dgx-0")}
    status, text = await ask(secured, "/exec/default/plain/main?output=1&command=ls")
    assert (status, "verb=create" in text) == (403, True)


async def test_answers_are_kept_for_a_while(secured: Any, api: ApiServer, clock: Clock) -> None:
    api.allowed = {("anna", "get", "healthz", "dgx-0")}
    for clock.now_s in (0.0, 100.0, 130.0):
        assert (await ask(secured, "/healthz"))[0] == 200
    assert api.asked == ["TokenReview", "SubjectAccessReview", "TokenReview"]


async def test_a_refusal_is_kept_for_less(secured: Any, api: ApiServer, clock: Clock) -> None:
    assert (await ask(secured, "/metrics"))[0] == 403
    api.allowed = {("anna", "get", "metrics", "dgx-0")}
    assert (await ask(secured, "/metrics"))[0] == 403
    clock.now_s = 31.0
    assert (await ask(secured, "/metrics"))[0] == 200


async def test_answers_about_nodes_that_are_long_gone_are_not_kept(
    api: ApiServer, clock: Clock
) -> None:
    asked = access.Access(cast(Any, api), clock)
    for number in range(1000):
        await asked.may(access.User("anna"), f"n-{number}", "get", "metrics")
        clock.now_s += 1.0
    # A refusal counts for half a minute.
    assert asked.remembered <= access.FEW_KEPT + 1


async def test_without_the_api_server_nobody_gets_in(secured: Any, api: ApiServer) -> None:
    api.down = True
    assert (await ask(secured, "/healthz"))[0] == 401


async def test_a_node_is_authorized_by_its_name(secured: Any, api: ApiServer, host: Any) -> None:
    host.nodes["dgx-1"] = type(host.nodes["dgx-0"])("dgx-1")
    api.allowed = {("anna", "get", "metrics", "dgx-1")}
    assert (await ask(secured, "/nodes/dgx-1/metrics/resource"))[0] == 200
    assert (await ask(secured, "/nodes/dgx-0/metrics/resource"))[0] == 403
    assert (await ask(secured, "/metrics/resource"))[0] == 403


async def test_a_pod_counts_as_its_node_whatever_node_is_named(
    secured: Any, api: ApiServer, host: Any
) -> None:
    host.nodes["dgx-1"] = type(host.nodes["dgx-0"])("dgx-1")
    api.allowed = {("anna", "get", "proxy", "dgx-1")}
    uri = {"X-Forwarded-Uri": "/api/v1/nodes/dgx-1/proxy/containerLogs/default/plain/main"}
    assert (await ask(secured, "/containerLogs/default/plain/main", **uri))[0] == 403


async def test_a_node_does_not_answer_for_another_ones_pod(http: Any, host: Any) -> None:
    uri = {"X-Forwarded-Uri": "/api/v1/nodes/dgx-1/proxy/containerLogs/default/plain/main"}
    answer = await http.get("/containerLogs/default/plain/main", headers=uri)
    assert (answer.status, await answer.text()) == (404, 'pod "plain" does not exist')


def test_a_certificate_names_a_user_and_groups() -> None:
    subject = ((("organizationName", "a"),), (("commonName", "kubelet-client"),))
    found = access.user_of({"subject": subject})
    assert found == access.User("kubelet-client", groups=("a", access.AUTHENTICATED))


async def test_entering_can_be_switched_off(host: Any) -> None:
    kubelet = server.KubeletServer(
        inspecting.Inspector(host), server.Options(access=None, enters=False)
    )
    async with test_utils.TestClient(test_utils.TestServer(kubelet.app)) as client:
        answer = await client.post("/exec/default/plain/main?output=1&command=ls")
        assert (answer.status, await answer.text()) == (405, "Debug endpoints are disabled.\n")
        assert (await client.get("/containerLogs/default/plain/main")).status == 200
