"""What a pod's life asks of its engines."""

import asyncio
from types import SimpleNamespace
from typing import Any

from modelserve.catalog import gpus
from modelserve.decide import nodefacts
from servelab.node.machines import images
from servelab.node.pods import enginecontrol, planning, podspec
from servelab.node.rules import actions
from servelab.timing import transfers

LARGE = ["--model", "meta-llama/Llama-3.1-70B-Instruct"]
NOON_S = 1_796_040_000.0


async def test_the_last_words_of_an_engine_that_cannot_start_have_their_time(make_pod: Any) -> None:
    pod = podspec.parse(make_pod(image="vllm/vllm-openai:v0.33.0", args=LARGE))
    facts = planning.NodeFacts(gpus.find("l4"), nodefacts.node_rates({}))
    plan = planning.of_pod(pod, facts, images.NodeImages(transfers.Alone(), "n-0"))
    said: list[str] = []
    exits: list[int] = []
    life: Any = SimpleNamespace(pod=pod, exited=lambda _, code, now_s: exits.append(code))
    services: Any = SimpleNamespace(engines=None, unix_s=lambda: NOON_S)
    done = asyncio.Event()
    control = enginecontrol.EngineControl(
        life, plan, services, done.set, lambda _, line: said.append(line)
    )
    running = asyncio.create_task(control.run())
    control.put(actions.Command(actions.Verb.SERVE, 0.0, "engine"))
    await done.wait()
    running.cancel()
    assert said[0] == (
        "(EngineCore pid=134) ERROR 11-30 12:00:00 [core.py:1584] EngineCore failed to start."
    )
    assert exits == [1]
