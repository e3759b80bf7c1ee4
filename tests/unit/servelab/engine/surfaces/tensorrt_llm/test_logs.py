"""Log lines in the manner of ``trtllm-serve``."""

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import launch
from servelab.engine import stamps
from servelab.engine.surfaces import surface
from servelab.engine.surfaces.tensorrt_llm import logs

CONTAINER = {
    "image": "nvcr.io/nvidia/tensorrt-llm/release:1.3.0",
    "command": ["trtllm-serve"],
    "args": ["meta-llama/Llama-3.1-8B-Instruct", "--max_seq_len=8192"],
}


def start_lines() -> tuple[surface.StartLine, ...]:
    gpu = gpus.find("NVIDIA-H100-80GB-HBM3")
    parsed = launch.parse(CONTAINER, {}, gpu)
    assert parsed is not None
    planned = coldstart.plan(parsed, gpu, coldstart.node_rates({}), coldstart.CacheState())
    return logs.start_lines(parsed, planned, gpu)


def test_a_start_ends_with_the_line_that_says_it_listens() -> None:
    last = start_lines()[-1].text
    assert last == "INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)"


def test_lines_come_in_the_order_of_their_phases_and_shares() -> None:
    order = [wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP]
    keys = [(order.index(line.phase), line.share) for line in start_lines()]
    assert keys == sorted(keys)


def test_the_time_stands_before_the_line() -> None:
    line = stamps.stamped(start_lines()[0].text, 1_700_000_000)
    assert line == "[11/14/2023-22:13:20] [TRT-LLM] [I] Using LLM with PyTorch backend"


def test_the_load_is_not_told() -> None:
    logs.load(1, 2, 3, 4, 0.5)
    assert len(logs.stop_lines()) == 4


def test_an_access_line_has_method_path_and_status() -> None:
    line = logs.access("1.2.3.4:5", "GET", "/health", 503)
    assert line.endswith('INFO:     1.2.3.4:5 - "GET /health HTTP/1.1" 503 Service Unavailable')
