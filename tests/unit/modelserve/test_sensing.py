"""What is noticed outside the API server."""

from typing import Any

from modelserve import sensing
from modelserve.api import names, wire
from modelserve.api.keys import Key
from modelserve.engines import sglang

MODEL = wire.ModelDemand("default", "llama")
KEY = Key("default", "llama")


def snapshot(*models: wire.ModelDemand) -> wire.DemandSnapshot:
    return wire.DemandSnapshot("g", "e", 1, models)


def changes(now: wire.DemandSnapshot, before: wire.DemandSnapshot) -> list[sensing.Change]:
    return list(sensing.changes(now, before))


def test_the_first_held_request_is_urgent() -> None:
    held = wire.ModelDemand("default", "llama", held=1, arrivals=1)
    assert changes(snapshot(held), snapshot(MODEL)) == [sensing.Change(KEY, 0.0)]


def test_more_of_the_same_may_wait_a_little() -> None:
    one = wire.ModelDemand("default", "llama", held=1)
    two = wire.ModelDemand("default", "llama", held=2)
    assert changes(snapshot(two), snapshot(one)) == [sensing.Change(KEY, sensing.GATHER_REAL_S)]


def test_equal_figures_are_no_news() -> None:
    assert not changes(snapshot(MODEL), snapshot(MODEL))


def test_a_model_that_is_no_longer_told_of_is_looked_at() -> None:
    assert changes(snapshot(), snapshot(MODEL)) == [sensing.Change(KEY, 0.0)]


def pod(running: bool = True, dial: str = "127.0.0.1:5000") -> dict[str, Any]:
    state = {"running": {}} if running else {"waiting": {"reason": "ContainerCreating"}}
    container = {
        "name": "engine",
        "command": ["vllm"],
        "args": ["serve", "meta-llama/Llama-3.1-8B"],
    }
    return {
        "metadata": {"name": "p", "annotations": {names.DIAL: dial}},
        "spec": {"nodeName": "n", "containers": [container]},
        "status": {"podIP": "10.200.0.1", "containerStatuses": [{"state": state}]},
    }


def node(virtual: bool) -> dict[str, Any]:
    labels = {names.LABEL_VIRTUAL: "true"} if virtual else {}
    return {"metadata": {"name": "n", "uid": "n", "labels": labels}}


def test_a_virtual_pod_is_scraped_where_its_engine_listens() -> None:
    target = sensing.target(pod(), node(virtual=True))
    assert target is not None
    assert target[0] == "http://127.0.0.1:5000/metrics"


def test_on_a_real_node_a_dial_address_is_not_followed() -> None:
    assert sensing.target(pod(), node(virtual=False)) is None


def test_an_emulated_pod_whose_node_is_gone_is_not_scraped() -> None:
    assert sensing.target(pod(), None) is None


def test_a_pod_that_does_not_run_yet_is_not_scraped() -> None:
    assert sensing.target(pod(running=False), node(virtual=True)) is None


def test_an_engine_that_refuses_its_arguments_is_not_scraped_and_stops_nobody_else() -> None:
    found = pod()
    found["spec"]["containers"][0]["args"] += ["--no-such-flag"]
    assert sensing.target(found, node(virtual=True)) is None


def test_an_engine_is_asked_under_its_own_metric_names() -> None:
    found = pod()
    found["spec"]["containers"][0] |= {"command": ["python3", "-m", "sglang.launch_server"]}
    found["spec"]["containers"][0] |= {"args": ["--model-path", "meta-llama/Llama-3.1-8B"]}
    target = sensing.target(found, node(virtual=True))
    assert target is not None
    assert target == ("http://127.0.0.1:5000/metrics", sglang.PROFILE.metrics)
