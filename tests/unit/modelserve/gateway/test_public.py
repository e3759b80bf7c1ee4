"""The API that clients see, errors first."""

import asyncio
import gzip
import io
import json
from typing import Any, cast

import pytest
import yarl
from aiohttp import web

from modelserve import ports
from modelserve.api.keys import Key

KEY = Key("default", "llama")


async def error(asking: Any) -> tuple[int, dict[str, Any], Any]:
    """Status, the error object and the headers of a refusal."""
    async with asking as response:
        return response.status, json.loads(await response.read())["error"], response.headers


async def test_an_unknown_model_is_404_with_the_nearest_names(lab: Any) -> None:
    status, said, _ = await error(lab.ask(model="llamma"))
    assert (status, said["code"], said["param"]) == (404, "model_not_found", "model")
    assert "did you mean 'llama'?" in said["message"]


async def test_malformed_json_is_400_in_the_usual_shape(lab: Any) -> None:
    status, said, _ = await error(lab.session.post(lab.url + "/v1/completions", data=b"{"))
    assert (status, said["type"]) == (400, "invalid_request_error")
    assert set(said) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", ["/v1/%2e%2e/sleep", "/v1/x/..%2f../sleep"])
async def test_no_path_leads_out_of_the_api_to_other_doors_of_an_engine(
    lab: Any, path: str
) -> None:
    engine = await lab.engine()
    lab.pod("a", engine.address)
    asked = lab.session.post(yarl.URL(lab.url + path, encoded=True), json={"model": "llama"})
    status, said, _ = await error(asked)
    assert (status, said["code"], engine.bodies) == (404, "not_found", [])


async def test_a_body_over_the_limit_is_413(lab: Any) -> None:
    status, said, _ = await error(
        lab.session.post(lab.url + "/v1/x", data=io.BytesIO(b" " * (2**20 + 1)))
    )
    assert (status, said["code"]) == (413, "request_too_large")


GZIP = {"Content-Type": "application/json", "Content-Encoding": "gzip"}


async def test_a_body_that_is_not_compressed_as_it_says_is_400(lab: Any) -> None:
    asked = lab.session.post(lab.url + "/v1/completions", data=b"no gzip", headers=GZIP)
    status, said, _ = await error(asked)
    assert (status, said["code"]) == (400, "invalid_content")


async def test_a_compressed_body_reaches_the_engine_unpacked(lab: Any) -> None:
    engine = await lab.engine()
    lab.pod("a", engine.address)
    body = json.dumps({"model": "llama", "prompt": "hi"}).encode()
    packed = gzip.compress(body)
    async with lab.session.post(lab.url + "/v1/completions", data=packed, headers=GZIP) as got:
        assert got.status == 200
    assert engine.bodies == [body]
    assert "Content-Encoding" not in engine.headers[0]


async def test_past_the_holds_bounds_it_is_429_with_retry_after(lab: Any) -> None:
    lab.model(gateway={"hold": {"maxRequests": 0}}, status={"autoscaler": {"waitSeconds": 41}})
    await lab.until(lambda: lab.gateway.dispatcher.machine(KEY).terms.max_requests == 0)
    status, said, headers = await error(lab.ask())
    assert (status, said["type"], said["code"]) == (429, "rate_limit_error", "hold_full")
    assert headers["Retry-After"] == "41"


async def test_an_expired_hold_is_503_with_retry_after(lab: Any) -> None:
    lab.model(gateway={"hold": {"maxSeconds": 1}})
    status, said, headers = await error(lab.ask())
    assert (status, said["code"]) == (503, "hold_expired")
    assert int(headers["Retry-After"]) >= 1


async def test_manual_at_zero_is_503_also_for_what_is_held(lab: Any) -> None:
    asking = asyncio.create_task(error(lab.ask()))
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    lab.model(scaling={"mode": "Manual"}, replicas=0)
    for status, said, headers in (await asking, await error(lab.ask())):
        assert (status, said["code"]) == (503, "scaled_to_zero")
        assert headers["x-should-retry"] == "false"


async def test_a_deleted_model_is_404_also_for_what_is_held(lab: Any) -> None:
    asking = asyncio.create_task(error(lab.ask()))
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    lab.cluster.remove(ports.MODELSERVES, "default", "llama")
    assert (await asking)[0] == 404
    assert (await error(lab.ask()))[0] == 404


async def test_a_model_that_can_never_serve_says_why(lab: Any) -> None:
    condition = {"type": "Stalled", "status": "True", "message": "weights need 2 GPUs"}
    lab.model(status={"conditions": [condition]})
    status, said, _ = await error(lab.ask())
    assert status == 503
    assert "weights need 2 GPUs" in said["message"]


async def test_models_lists_every_model_those_at_zero_too(lab: Any) -> None:
    lab.model("young", created="2026-02-01T00:00:00Z", model={"servedName": "llama"})
    await lab.until(lambda: len(list(lab.gateway.view.table)) == 2)
    async with lab.session.get(lab.url + "/v1/models") as response:
        listed = await response.json()
    assert [m["id"] for m in listed["data"]] == ["default/young", "llama"]
    assert listed["data"][1]["created"] == 1767225600


@pytest.mark.parametrize(("name", "status"), [("llama", 200), ("default/llama", 200), ("x", 404)])
async def test_one_model_can_be_asked_for(lab: Any, name: str, status: int) -> None:
    async with lab.session.get(f"{lab.url}/v1/models/{name}") as response:
        assert response.status == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nowhere", 404), ("GET", "/v1/chat/completions", 405), ("POST", "/health", 405)],
)
async def test_other_paths_and_methods_get_errors_in_the_usual_shape(
    lab: Any, method: str, path: str, status: int
) -> None:
    assert (await error(lab.session.request(method, lab.url + path)))[0] == status


@pytest.mark.parametrize("path", ["/health", "/healthz", "/livez", "/readyz"])
async def test_health_is_200(lab: Any, path: str) -> None:
    async with lab.session.get(lab.url + path) as response:
        assert response.status == 200


async def test_before_the_cluster_is_known_it_is_not_ready_and_requests_wait(
    unsynced_lab: Any,
) -> None:
    lab = unsynced_lab
    engine = await lab.engine()
    lab.pod("a", engine.address)
    asking = asyncio.create_task(lab.asked())
    async with lab.session.get(lab.url + "/readyz") as response:
        assert response.status == 503
    lab.cluster.hushed.set()
    assert (await asking)[0] == 200


async def test_metrics_has_every_model_from_the_start_and_none_after_its_end(lab: Any) -> None:
    labels = '{modelserve="llama",namespace="default"}'
    assert f"modelserve_gateway_held_requests{labels} 0.0" in await scrape(lab)
    engine = await lab.engine()
    lab.pod("a", engine.address)
    await lab.asked()
    text = await scrape(lab)
    assert 'requests_total{code="200",modelserve="llama",namespace="default"} 1.0' in text
    assert f"overhead_seconds_count{labels} 1.0" in text
    lab.cluster.remove(ports.MODELSERVES, "default", "llama")
    await lab.until(lambda: not list(lab.gateway.view.table))
    assert "llama" not in await scrape(lab)


async def test_a_request_that_outlives_its_model_brings_no_series_back(lab: Any) -> None:
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    lab.cluster.remove(ports.MODELSERVES, "default", "llama")
    assert (await asking)[0] == 404
    assert "llama" not in await scrape(lab)


async def test_an_answer_that_begins_after_its_models_end_brings_no_series_back(lab: Any) -> None:
    engine = await lab.engine()
    engine.handler = engine.wait
    lab.pod("a", engine.address)
    asking = asyncio.create_task(lab.asked())
    await engine.asked.wait()
    lab.cluster.remove(ports.MODELSERVES, "default", "llama")
    await lab.until(lambda: not list(lab.gateway.view.table))
    engine.go_on.set()
    assert (await asking)[0] == 200
    assert "llama" not in await scrape(lab)


async def test_a_reset_after_its_models_end_brings_no_series_back(lab: Any) -> None:
    engine = await lab.engine()
    lab.pod("a", engine.address)

    async def reset(request: web.Request) -> web.StreamResponse:
        await engine.go_on.wait()
        return cast(web.StreamResponse, await engine.reset(request))

    engine.handler = reset
    asking = asyncio.create_task(lab.asked())
    await engine.asked.wait()
    lab.cluster.remove(ports.MODELSERVES, "default", "llama")
    await lab.until(lambda: not list(lab.gateway.view.table))
    engine.go_on.set()
    assert (await asking)[0] == 404
    assert "llama" not in await scrape(lab)


async def test_a_client_that_left_is_counted_as_499(lab: Any) -> None:
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    asking.cancel()
    await lab.until(lambda: lab.gateway.dispatcher.held == 0)
    assert 'requests_total{code="499"' in await scrape(lab)


async def scrape(lab: Any) -> str:
    async with lab.session.get(lab.url + "/metrics") as response:
        return str(await response.text())
