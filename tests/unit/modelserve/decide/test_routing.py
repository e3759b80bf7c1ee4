"""Routing: names to models, pods to addresses, forecasts to Retry-After."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.api import names
from modelserve.decide import fleet, holding, routing

NODES = frozenset({"virtual-1"})


def model(name: str, namespace: str = "default", **changes: Any) -> dict[str, Any]:
    metadata = {
        "namespace": namespace,
        "name": name,
        "creationTimestamp": changes.pop("created", "2026-01-01T00:00:00Z"),
        **changes.pop("metadata", {}),
    }
    served = {"name": "m/M", **changes.pop("model", {})}
    status = changes.pop("status", {})
    spec = {"model": served, "gpu": {"product": "H100"}, **changes}
    return {"metadata": metadata, "spec": spec, "status": status}


def table(*items: dict[str, Any]) -> routing.Table:
    return routing.Table([routing.read_route(item) for item in items])


def found(routes: routing.Table, asked: str) -> str:
    route = routes.find(asked)
    return str(route.key) if route else ""


def pod(*, node: str = "virtual-1", status: Any = None, **metadata: Any) -> dict[str, Any]:
    ports = [{"name": "metrics", "containerPort": 1}, {"name": "http", "containerPort": 9000}]
    probe = {"httpGet": {"path": "/v1/health/ready"}}
    engine = {"name": "engine", "ports": ports, "readinessProbe": probe}
    return {
        "metadata": {"namespace": "default", "name": "p", "uid": "u", **metadata},
        "spec": {"nodeName": node, "containers": [{"name": "sidecar"}, engine]},
        "status": {"podIP": "10.0.0.1"} if status is None else status,
    }


def test_a_model_is_found_by_the_name_it_is_served_under() -> None:
    routes = table(model("a", model={"servedName": "meta/llama"}), model("b"))
    assert [found(routes, n) for n in ("meta/llama", "a", "b")] == ["default/a", "", "default/b"]


def test_a_model_is_found_by_namespace_and_name() -> None:
    assert found(table(model("a", "team")), "team/a") == "team/a"


def test_of_two_with_one_served_name_the_older_wins_and_it_is_said() -> None:
    routes = table(
        model("llama", "new", created="2026-02-01T00:00:00Z"),
        model("llama", "old", created="2026-01-01T00:00:00Z"),
    )
    assert found(routes, "llama") == "old/llama"
    assert [name for name, _ in routes.named()] == ["llama", "new/llama"]
    assert routes.shadowed()[0].startswith("new/llama serves 'llama' as old/llama does")


def test_unknown_names_get_the_nearest_ones_whatever_their_case() -> None:
    assert table(model("llama-8b"), model("qwen")).nearest("LLama-8") == ["llama-8b"]


def test_terms_come_from_the_spec_with_its_defaults() -> None:
    assert routing.read_route(model("a")).terms == holding.Terms(slots=32)


def test_slots_per_replica_goes_before_the_batch_limit() -> None:
    engine = {"batching": {"maxSequences": 8}}
    assert routing.read_route(model("a", engine=engine)).terms.slots == 8
    both = model("a", engine=engine, gateway={"slotsPerReplica": 3})
    assert routing.read_route(both).terms.slots == 3


@pytest.mark.parametrize(
    ("changes", "closed"),
    [
        pytest.param({}, None, id="auto"),
        pytest.param({"replicas": 0}, None, id="auto ignores replicas"),
        pytest.param({"scaling": {"mode": "Manual"}}, None, id="manual at one"),
        pytest.param(
            {"scaling": {"mode": "Manual"}, "replicas": 0},
            holding.Refusal.SCALED_TO_ZERO,
            id="manual at zero",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            holding.Refusal.DELETED,
            id="being deleted",
        ),
    ],
)
def test_a_model_is_closed_when_nothing_may_wake_it(changes: Any, closed: Any) -> None:
    assert routing.read_route(model("a", **changes)).terms.closed == closed


def test_a_stalled_model_is_closed_unless_a_replica_still_serves() -> None:
    condition = {"type": "Stalled", "status": "True", "message": "does not fit"}
    route = routing.read_route(model("a", status={"conditions": [condition]}))
    assert route.stalled == "does not fit"
    assert routing.terms_in_force(route, []).closed is holding.Refusal.STALLED
    assert routing.terms_in_force(route, [fleet.Replica("u", ready=True)]).closed is None


def test_a_mended_spec_is_no_longer_stalled_before_the_operator_says_so() -> None:
    condition = {"type": "Stalled", "status": "True", "message": "does not fit"}
    status = {"observedGeneration": 1, "conditions": [condition]}
    assert routing.read_route(model("a", metadata={"generation": 1}, status=status)).stalled
    assert not routing.read_route(model("a", metadata={"generation": 2}, status=status)).stalled


def test_a_spec_that_makes_no_sense_is_an_input_error() -> None:
    with pytest.raises(errors.InputError, match="default/a"):
        routing.read_route(model("a", gateway={"hold": {"maxBytes": "lots"}}))


def address(item: Any) -> str:
    replica = routing.read_replica(item, NODES)
    assert replica is not None
    return replica.address


def test_the_dial_annotation_counts_on_virtual_nodes_only() -> None:
    annotations = {names.DIAL: "127.0.0.1:7"}
    assert address(pod(annotations=annotations)) == "127.0.0.1:7"
    assert address(pod(node="real", annotations=annotations)) == ""


def test_a_pod_on_a_virtual_node_without_the_annotation_has_no_address() -> None:
    assert address(pod()) == ""


@pytest.mark.parametrize(
    ("ip", "expected"), [(None, ""), ("10.0.0.1", "10.0.0.1:9000"), ("fd00::1", "[fd00::1]:9000")]
)
def test_other_pods_are_dialled_at_their_ip_and_http_port(ip: str | None, expected: str) -> None:
    assert address(pod(node="real", status={"podIP": ip})) == expected


def test_the_health_path_is_the_readiness_probes() -> None:
    replica = routing.read_replica(pod(), NODES)
    assert replica is not None
    assert replica.health_path == "/v1/health/ready"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_takes_no_part(phase: str) -> None:
    assert routing.read_replica(pod(status={"phase": phase}), NODES) is None


@pytest.mark.parametrize(
    ("metadata", "leaving", "terminating"),
    [
        pytest.param({}, False, False, id="stays"),
        pytest.param({"deletionTimestamp": "x"}, True, True, id="terminating"),
        pytest.param({"annotations": {names.POD_DELETION_COST: "-1"}}, True, False, id="victim"),
        pytest.param({"annotations": {names.POD_DELETION_COST: "5"}}, False, False, id="dear"),
        pytest.param({"annotations": {names.POD_DELETION_COST: "?"}}, False, False, id="nonsense"),
    ],
)
def test_terminating_pods_and_victims_are_leaving(
    metadata: Any, leaving: bool, terminating: bool
) -> None:
    replica = routing.read_replica(pod(**metadata), NODES)
    assert replica is not None
    assert (replica.leaving, replica.terminating) == (leaving, terminating)


@pytest.mark.parametrize(
    ("status", "retry_after_real_s"),
    [
        pytest.param({}, 5, id="nothing known"),
        pytest.param({"nextReadyAt": "1970-01-01T00:02:00Z"}, 20, id="next ready"),
        pytest.param({"nextReadyAt": "1970-01-01T00:01:00Z"}, 5, id="overdue"),
        pytest.param({"nextReadyAt": "soon"}, 5, id="no time"),
        pytest.param({"autoscaler": {"waitSeconds": 7.2}}, 8, id="forecast"),
        pytest.param({"autoscaler": {"waitSeconds": 0}}, 1, id="at least one"),
        pytest.param({"autoscaler": {"waitSeconds": 1e9}}, 3600, id="at most an hour"),
        pytest.param(
            {"autoscaler": {"waitSeconds": 7}, "nextReadyAt": "1970-01-01T00:02:00Z"},
            20,
            id="the later",
        ),
    ],
)
def test_retry_after_follows_the_operators_forecast(status: Any, retry_after_real_s: int) -> None:
    route = routing.read_route(model("a", status=status))
    assert routing.retry_after_real_s(route, 100.0) == retry_after_real_s


def test_a_keep_alive_is_one_line_whatever_the_status_says() -> None:
    route = routing.read_route(model("a", status={"waitingFor": "x\r\n\ndata: evil"}))
    assert routing.waiting_comment(route) == "waiting for a: x data: evil"
    assert "room" in routing.waiting_comment(routing.read_route(model("a")))
