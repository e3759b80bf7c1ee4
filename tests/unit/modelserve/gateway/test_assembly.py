"""Start and end of a gateway."""

import asyncio
import json
from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.adapters import clock as clocks
from modelserve.api import names
from modelserve.api.keys import Key
from modelserve.gateway import assembly, dispatch
from modelserve.testing import census


def lease(lab: Any) -> Any:
    leases = lab.cluster.objects.get("leases", {})
    return leases.get((names.SYSTEM_NAMESPACE, "modelserve-gateway-g"))


async def test_a_running_gateway_is_a_member(lab: Any) -> None:
    await lab.until(lambda: lease(lab) is not None)
    annotations = lease(lab)["metadata"]["annotations"]
    assert annotations[names.GATEWAY_ADDRESS] == assembly.join(*lab.gateway.internal_address)
    assert annotations[names.GATEWAY_EPOCH] == "e1"


async def test_at_the_end_it_is_unready_and_no_member_while_it_drains(draining_lab: Any) -> None:
    lab = draining_lab
    engine = await lab.engine()
    engine.handler = engine.wait
    lab.pod("a", engine.address)
    asking = asyncio.create_task(lab.asked())
    await engine.asked.wait()
    await lab.until(lambda: lease(lab) is not None)
    stopping = asyncio.create_task(lab.gateway.stop())
    await lab.until(lambda: lease(lab) is None)
    async with lab.session.get(lab.url + "/readyz") as response:
        assert response.status == 503
    engine.go_on.set()
    assert (await asking)[0] == 200
    await stopping


async def test_what_is_still_held_at_the_end_gets_503_with_retry_after(draining_lab: Any) -> None:
    lab = draining_lab
    asking = asyncio.create_task(lab.ask().__aenter__())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    await lab.gateway.stop()
    response = await asking
    assert (response.status, response.headers["Retry-After"]) == (503, "1")
    assert json.loads(await response.read())["error"]["code"] == "gateway_stopping"


async def test_a_taken_port_is_said_in_one_sentence(lab: Any) -> None:
    settings = assembly.Settings(
        token="t", identity="g2", epoch="e", listen=lab.gateway.address, drain_real_s=0.0
    )
    second = assembly.Gateway(lab.cluster, clocks.SystemClock(), settings)
    with pytest.raises(errors.SetUpError, match="choose another port"):
        await second.start()
    await second.stop()


async def test_a_pod_on_a_node_that_turns_virtual_becomes_reachable(lab: Any) -> None:
    engine = await lab.engine()
    lab.cluster.remove(ports.NODES, "", "gpu-1")
    lab.pod("a", engine.address)
    asking = asyncio.create_task(lab.asked())
    await lab.until(lambda: lab.gateway.dispatcher.held == 1)
    lab.cluster.put(ports.NODES, {"metadata": {"name": "gpu-1"}})
    assert (await asking)[0] == 200


async def test_models_that_come_and_go_leave_nothing_behind(lab: Any) -> None:
    engine = await lab.engine()
    left: list[int] = []
    for _ in range(4):
        for number in range(3):
            await come_and_go(lab, engine, f"m-{number}-{len(left)}")
        lab.clock.skip(dispatch.FORGET_REAL_S)
        await lab.until(lambda: len(list(lab.gateway.dispatcher.items())) == 1)
        apart = (lab.cluster, lab.session, lab.engines)
        left.append(census.reachable(lab.gateway, apart=apart))
    # One entry more for each that went would be nine.
    assert left[-1] - left[0] < 9


async def come_and_go(lab: Any, engine: Any, name: str) -> None:
    """A model with one replica: an answer, a client who leaves, one who outlives the model."""
    lab.model(name)
    engine.handler = engine.answer_json
    lab.pod(f"{name}-a", engine.address, labels={names.LABEL_MODELSERVE: name})
    assert (await lab.asked(model=name))[0] == 200
    engine.go_on.clear()
    engine.handler = engine.stream(b"data: 1\n\n", then_reset=True)
    async with lab.ask(stream=True, model=name) as response:
        await response.content.readany()
        response.close()
    await lab.until(lambda: lab.gateway.dispatcher.in_flight == 0)
    engine.handler = engine.wait
    engine.asked.clear()
    asking = asyncio.create_task(lab.asked(model=name))
    await engine.asked.wait()
    lab.cluster.remove(ports.MODELSERVES, "default", name)
    lab.cluster.remove(ports.PODS, "default", f"{name}-a")
    await lab.until(lambda: lab.gateway.view.table.find(name) is None)
    await lab.until(lambda: not lab.gateway.view.replicas(Key("default", name)))
    engine.go_on.set()
    assert (await asking)[0] == 200
    engine.bodies.clear()
    engine.headers.clear()
