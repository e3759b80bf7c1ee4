"""Metrics and stats, read as their readers read them."""

import re
from typing import Any

import pytest
from prometheus_client import parser

from servelab.engine import metering

IDLE = metering.Load()
BUSY = metering.Load(running=8, kv_usage=0.5, busy_s=0.2, steps=20, tokens=800)


async def read(http: Any, path: str) -> dict[tuple[str, str], float]:
    """Samples by name and container, pod or GPU."""
    text = await (await http.get(path)).text()
    samples = (s for family in parser.text_string_to_metric_families(text) for s in family.samples)
    keys = ("container", "pod", "gpu")
    return {
        (s.name, next((s.labels[k] for k in keys if k in s.labels), "")): s.value for s in samples
    }


async def metrics_server(http: Any) -> dict[str, tuple[float, float]]:
    """Cores and bytes by container, and of the node: two scrapes, as metrics-server 0.9 decodes.

    It takes the names byte for byte, wants a timestamp on usage, and the start of each container.
    """
    names = (
        "node_cpu_usage_seconds_total",
        "node_memory_working_set_bytes",
        "container_cpu_usage_seconds_total",
        "container_memory_working_set_bytes",
        "container_start_time_seconds",
    )
    points: dict[str, dict[str, tuple[float, int]]] = {}
    for line in (await (await http.get("/metrics/resource")).text()).splitlines():
        match = re.fullmatch(r'(\w+)(?:{container="(\w+)".*})? (\S+)(?: (\d+))?', line)
        if match and match[1] in names:
            at_ms = int(match[4]) if match[4] else 0
            points.setdefault(match[2] or "node", {})[match[1]] = (float(match[3]), at_ms)
    return {
        key: (
            found[f"{'node' if key == 'node' else 'container'}_cpu_usage_seconds_total"][0],
            found[f"{'node' if key == 'node' else 'container'}_memory_working_set_bytes"][0],
        )
        for key, found in points.items()
        if all(at_ms > 0 for name, (_, at_ms) in found.items() if "start" not in name)
    }


async def test_metrics_server_sees_the_node_and_its_containers(http: Any, host: Any) -> None:
    first = await metrics_server(http)
    host.now_s += 10
    second = await metrics_server(http)
    assert first.keys() == {"node", "engine", "main"}
    cores = {key: (second[key][0] - first[key][0]) / 10 for key in first}
    assert cores["engine"] == pytest.approx(0.03)
    assert cores["node"] > cores["engine"] + cores["main"]
    assert second["node"][1] > second["engine"][1] > second["main"][1] > 0


async def test_an_engine_with_work_takes_processors(http: Any, host: Any) -> None:
    host.loads_ = [{"llm-uid": IDLE}, {"llm-uid": metering.Load(busy_s=10.0)}]
    before = (await read(http, "/metrics/resource"))[
        ("container_cpu_usage_seconds_total", "engine")
    ]
    host.now_s += 10
    after = (await read(http, "/metrics/resource"))[("container_cpu_usage_seconds_total", "engine")]
    assert (after - before) / 10 == pytest.approx(1.63)


async def test_a_limit_holds_an_engine_back(http: Any, host: Any) -> None:
    container = host.pods[0].pod.raw["spec"]["containers"][0]
    container["resources"]["limits"] |= {"cpu": "100m", "memory": "1Gi"}
    found = await read(http, "/metrics/resource")
    age_s = 30 * 60
    assert found[("container_cpu_usage_seconds_total", "engine")] == pytest.approx(age_s / 10)
    assert found[("container_memory_working_set_bytes", "engine")] == 1 << 30


async def test_a_container_that_ended_uses_nothing(http: Any, host: Any) -> None:
    host.pods[1].state = {"terminated": {}}
    found = await read(http, "/metrics/resource")
    assert ("container_cpu_usage_seconds_total", "main") not in found
    assert found[("scrape_error", "")] == found[("resource_scrape_error", "")] == 0


async def test_dcgm_follows_what_the_engine_does(http: Any, host: Any) -> None:
    host.loads_ = [{"llm-uid": IDLE}, {"llm-uid": BUSY}]
    await http.get("/metrics/dcgm")
    host.now_s += 0.4
    text = await (await http.get("/metrics/dcgm")).text()
    assert re.search(r'DCGM_FI_DEV_GPU_UTIL{gpu="0",.*container="engine".*pod="llm"} 50\n', text)
    assert re.search(r'DCGM_FI_DEV_GPU_UTIL{gpu="1",.*Hostname="dgx-0",[^n]*} 0\n', text)
    used = re.search(r'DCGM_FI_DEV_FB_USED{gpu="0".*} (\d+)\n', text)
    assert used is not None
    assert 70_000 < int(used[1]) < 81_559


async def test_an_xid_error_is_told_of_its_gpu(http: Any, host: Any) -> None:
    host.pods[0].xids = {"engine": 79}
    found = await read(http, "/metrics/dcgm")
    assert found[("DCGM_FI_DEV_XID_ERRORS", "engine")] == 79


async def test_a_summary_tells_rates_once_it_has_two_looks(http: Any, host: Any) -> None:
    host.loads_ = [{"llm-uid": IDLE}, {"llm-uid": metering.Load(busy_s=10.0)}]
    await http.get("/stats/summary")
    host.now_s += 10
    body = await (await http.get("/stats/summary")).json()
    engine = next(p for p in body["pods"] if p["podRef"]["name"] == "llm")["containers"][0]
    assert engine["cpu"]["usageNanoCores"] == pytest.approx(1.63e9)
    assert engine["accelerators"][0]["model"] == "NVIDIA H100 80GB HBM3"
    assert body["node"]["memory"]["availableBytes"] < 2 << 40


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/metrics", "kubelet_running_pods 2\n"),
        ("/metrics/cadvisor", 'container_memory_rss{container="engine",id="/kubepods/'),
        ("/healthz?verbose", "healthz check passed"),
        ("/configz", '"nodeLeaseDurationSeconds": 40'),
        ("/pods", '"kind": "PodList"'),
        ("/runningpods/", '"name": "plain"'),
    ],
)
async def test_the_other_pages_are_there(http: Any, path: str, words: str) -> None:
    assert words in await (await http.get(path)).text()


async def test_pages_of_one_node_want_its_name_where_there_are_several(
    http: Any, host: Any
) -> None:
    host.nodes["dgx-1"] = type(host.nodes["dgx-0"])("dgx-1")
    refused = await http.get("/metrics/resource")
    assert (refused.status, "put /nodes/<name> before" in await refused.text()) == (400, True)
    uri = {"X-Forwarded-Uri": "/api/v1/nodes/dgx-1/proxy/metrics/resource"}
    for named in (
        await http.get("/nodes/dgx-1/metrics/resource"),
        await http.get("/metrics/resource", headers=uri),
    ):
        assert "container_" not in await named.text()
    assert (await http.get("/nodes/dgx-9/metrics")).status == 404


async def test_a_checkpoint_is_not_offered(http: Any) -> None:
    assert (await http.post("/checkpoint/default/plain/main")).status == 404
