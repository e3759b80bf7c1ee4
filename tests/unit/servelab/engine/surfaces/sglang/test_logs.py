"""Log lines in SGLang's manner."""

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import launch
from servelab.engine import stamps
from servelab.engine.surfaces import surface
from servelab.engine.surfaces.sglang import logs

CONTAINER = {
    "image": "lmsysorg/sglang:latest",
    "command": ["python3", "-m", "sglang.launch_server"],
    "args": ["--model-path=meta-llama/Llama-3.1-8B-Instruct", "--context-length=8192"],
}


def start_lines() -> tuple[surface.StartLine, ...]:
    gpu = gpus.find("NVIDIA-H100-80GB-HBM3")
    parsed = launch.parse(CONTAINER, {}, gpu)
    assert parsed is not None
    planned = coldstart.plan(parsed, gpu, coldstart.node_rates({}), coldstart.CacheState())
    return logs.start_lines(parsed, planned, gpu)


def test_a_start_ends_with_the_line_that_says_it_is_ready() -> None:
    assert start_lines()[-1].text.endswith("The server is fired up and ready to roll!")


def test_lines_come_in_the_order_of_their_phases_and_shares() -> None:
    order = [wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP]
    keys = [(order.index(line.phase), line.share) for line in start_lines()]
    assert keys == sorted(keys)


def test_the_time_stands_before_the_line() -> None:
    line = stamps.stamped(logs.load(1, 2, 3, 4, 0.5), 1_700_000_000)
    assert line.startswith("[2023-11-14 22:13:20] Decode batch, #running-req: 3, ")


def test_an_access_line_has_method_path_and_status() -> None:
    line = logs.access("1.2.3.4:5", "GET", "/health", 503)
    assert line.endswith('INFO:     1.2.3.4:5 - "GET /health HTTP/1.1" 503 Service Unavailable')
