"""Logs in the manner of TGI, Triton, NIM and KServe."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import launch
from servelab.engine import stamps
from servelab.engine.surfaces import registry, surface
from servelab.engine.surfaces.kserve import logs as kserve
from servelab.engine.surfaces.nim import logs as nim

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
CONTAINERS: Mapping[str, Mapping[str, Any]] = {
    "tgi": {"command": ["text-generation-launcher", f"--model-id={LLAMA}"]},
    "tgi-json": {"command": ["text-generation-launcher", f"--model-id={LLAMA}", "--json-output"]},
    "triton": {
        "command": ["python3", "openai_frontend/main.py"],
        "args": ["--model-repository=/models", f"--tokenizer={LLAMA}"],
    },
    "nim": {"env": [{"name": "NIM_MODEL_NAME", "value": LLAMA}]},
    "kserve": {
        "image": "kserve/huggingfaceserver:v0.20.0-gpu",
        "args": [f"--model_id={LLAMA}", "--model_name=llama"],
    },
}
AT_UNIX_S = 1_700_000_000.075


def started(name: str) -> tuple[surface.Log, tuple[surface.StartLine, ...]]:
    gpu = gpus.find("NVIDIA-H100-80GB-HBM3")
    parsed = launch.parse({"image": "x", **CONTAINERS[name]}, {}, gpu)
    assert parsed is not None
    planned = coldstart.plan(parsed, gpu, coldstart.node_rates({}), coldstart.CacheState())
    log = registry.of(parsed.engine, parsed.options).log
    return log, tuple(log.start_lines(parsed, planned, gpu))


@pytest.mark.parametrize("name", CONTAINERS)
def test_lines_come_in_the_order_of_their_phases_and_shares(name: str) -> None:
    order = [wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP]
    keys = [(order.index(line.phase), line.share) for line in started(name)[1]]
    assert keys == sorted(keys)
    assert {line.phase for line in started(name)[1]} == set(order)


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_mark_of_a_time_is_left(name: str) -> None:
    log, lines = started(name)
    texts = [line.text for line in lines] + list(log.stop_lines())
    assert not [text for text in texts if "{at:" in stamps.stamped(text, AT_UNIX_S)]


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("tgi", "Connected"),
        ("nim", "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"),
        ("kserve", "Uvicorn running on http://0.0.0.0:8080 (Press CTRL+C to quit)"),
    ],
)
def test_a_start_ends_when_it_listens(name: str, last: str) -> None:
    assert started(name)[1][-1].text.endswith(last)


@pytest.mark.parametrize(
    ("logs", "expected"),
    [
        (
            nim,
            'INFO 2023-11-14 22:13:20.075 httptools_impl.py:481] 127.0.0.1:1 - "POST /v1/x '
            'HTTP/1.1" 200',
        ),
        (
            kserve,
            "2023-11-14 22:13:20.075 uvicorn.access INFO:     127.0.0.1:1 1 - "
            '"POST /v1/x HTTP/1.1" 200 OK',
        ),
    ],
)
def test_an_access_line_has_method_path_and_status(logs: ModuleType, expected: str) -> None:
    line = logs.access("127.0.0.1:1", "POST", "/v1/x", 200)
    assert stamps.stamped(line, AT_UNIX_S) == expected
