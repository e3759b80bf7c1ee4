"""The engines' logs: while they start, for each request, and about their load."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import launch
from servelab.engine import stamps
from servelab.engine.surfaces import logs, startlines, surface

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
CONTAINERS: Mapping[str, Mapping[str, Any]] = {
    "vllm": {"command": ["vllm", "serve", LLAMA], "args": ["--max-num-seqs=32"]},
    "sglang": {
        "command": ["python3", "-m", "sglang.launch_server", f"--model-path={LLAMA}"],
        "args": ["--schedule-policy=lpm"],
    },
    "tensorrt-llm": {"command": ["trtllm-serve", LLAMA]},
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
LISTENING = "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"


@dataclass(frozen=True)
class Busy:
    """The gauges of an engine that works."""

    running: int = 3
    waiting: int = 4
    kv_usage: float = 0.5
    prefix_tokens: tuple[int, int] = (200, 50)


def started(name: str) -> tuple[surface.Log, tuple[surface.StartLine, ...]]:
    gpu = gpus.find("NVIDIA-H100-80GB-HBM3")
    parsed = launch.parse({"image": "x", **CONTAINERS[name]}, {}, gpu)
    assert parsed is not None
    planned = coldstart.plan(parsed, gpu, nodefacts.node_rates({}), nodefacts.CacheState())
    log = logs.of(parsed.engine, parsed.options)
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


@pytest.mark.parametrize("name", CONTAINERS)
def test_lines_tell_how_long_their_phase_took(name: str) -> None:
    texts = [startlines.timed(line.text, 61.5) for line in started(name)[1]]
    assert not [text for text in texts if "\0" in text]


def test_vllm_tells_how_long_its_weights_took() -> None:
    texts = [startlines.timed(line.text, 61.5) for line in started("vllm")[1]]
    assert any(text.endswith("Loading weights took 61.50 seconds") for text in texts)
    assert any("2/4 [00:30<00:30, 15.38s/it]" in text for text in texts)


def test_tgi_that_was_told_to_write_json_does_so_to_its_end() -> None:
    log, _ = started("tgi-json")
    assert {json.loads(line)["level"] for line in log.stop_lines()} == {"INFO"}


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("vllm", "Application startup complete."),
        ("sglang", "The server is fired up and ready to roll!"),
        ("tensorrt-llm", f"INFO:     {LISTENING}"),
        ("tgi", "Connected"),
        ("nim", LISTENING),
        ("kserve", LISTENING.replace("8000", "8080")),
    ],
)
def test_a_start_ends_when_it_listens(name: str, last: str) -> None:
    assert started(name)[1][-1].text.endswith(last)


def test_sglang_listens_before_its_warm_up_request() -> None:
    lines = [line for line in started("sglang")[1] if line.phase is wire.Phase.WARM_UP]
    (listening,) = (line for line in lines if line.listens)
    assert "Uvicorn running on" in listening.text
    assert [line.share for line in lines if "/generate" in line.text] == [1.0]
    assert 0.0 < listening.share < 1.0


@pytest.mark.parametrize("name", ["vllm", "sglang"])
def test_weight_progress_goes_from_nothing_to_all_shards(name: str) -> None:
    progress = [line.text for line in started(name)[1] if "checkpoint shards" in line.text]
    assert "  0% Completed | 0/4" in progress[0]
    assert "100% Completed | 4/4" in progress[-1]


def test_sglang_repeats_its_arguments_as_an_object_of_their_class() -> None:
    (line,) = (line.text for line in started("sglang")[1] if "server_args=" in line.text)
    told = line.partition("server_args=")[2]
    assert told.startswith("ServerArgs(")
    assert told.endswith(")")
    assert f"model_path='{LLAMA}', " in told
    assert "schedule_policy='lpm', " in told


def test_tensorrt_llm_tells_the_blocks_that_it_has() -> None:
    (line,) = (line.text for line in started("tensorrt-llm")[1] if "KV cache blocks" in line.text)
    assert "tokens per block=32" in line


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("vllm", 'INFO:     1.2.3.4:5 - "POST /v1/x HTTP/1.1" 503 {}'),
        ("sglang", '[2023-11-14 22:13:20] INFO:     1.2.3.4:5 - "POST /v1/x HTTP/1.1" 503 {}'),
        ("tensorrt-llm", 'INFO:     1.2.3.4:5 - "POST /v1/x HTTP/1.1" 503 {}'),
        ("triton", 'INFO:     1.2.3.4:5 - "POST /v1/x HTTP/1.1" 503 {}'),
        (
            "nim",
            'INFO 2023-11-14 22:13:20.075 httptools_impl.py:481] 1.2.3.4:5 - "POST /v1/x '
            'HTTP/1.1" 503',
        ),
        (
            "kserve",
            "2023-11-14 22:13:20.075 uvicorn.access INFO:     1.2.3.4:5 1 - "
            '"POST /v1/x HTTP/1.1" 503 {}',
        ),
    ],
)
def test_an_access_line_has_method_path_and_status(name: str, expected: str) -> None:
    line = started(name)[0].access("1.2.3.4:5", "POST", "/v1/x", 503)
    assert line is not None
    assert stamps.stamped(line, AT_UNIX_S) == expected.format("Service Unavailable")


@pytest.mark.parametrize(
    ("name", "begins", "holds"),
    [
        ("vllm", "(APIServer pid=1) INFO 11-14 22:13:20 [loggers.py", "hit rate: 25.0%"),
        ("kserve", "(APIServer pid=1) INFO 11-14 22:13:20 [loggers.py", "Waiting: 4 reqs"),
        ("sglang", "[2023-11-14 22:13:20] Decode batch, #running-req: 3, ", "#queue-req: 4"),
        ("nim", "INFO 2023-11-14 22:13:20.075 metrics.py:334]", "KV cache usage: 50.0%"),
    ],
)
def test_the_load_is_told_in_a_line(name: str, begins: str, holds: str) -> None:
    line = started(name)[0].load(1.0, 2.0, Busy())
    assert line is not None
    stamped = stamps.stamped(line, AT_UNIX_S)
    assert stamped.startswith(begins)
    assert holds in stamped


@pytest.mark.parametrize("name", ["tensorrt-llm", "tgi", "triton"])
def test_some_engines_say_nothing_of_their_load(name: str) -> None:
    assert started(name)[0].load(1.0, 2.0, Busy()) is None
