"""Log lines in vLLM's manner."""

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.decide import coldstart
from modelserve.engines import launch
from servelab.engine import stamps
from servelab.engine.surfaces import surface
from servelab.engine.surfaces.vllm import logs

CONTAINER = {
    "image": "vllm/vllm-openai:latest",
    "command": ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"],
    "args": ["--max-model-len=8192", "--max-num-seqs=32"],
}


def start_lines() -> tuple[surface.StartLine, ...]:
    gpu = gpus.find("NVIDIA-H100-80GB-HBM3")
    parsed = launch.parse(CONTAINER, {}, gpu)
    assert parsed is not None
    planned = coldstart.plan(parsed, gpu, coldstart.node_rates({}), coldstart.CacheState())
    return logs.start_lines(parsed, planned, gpu)


def test_a_start_ends_with_the_line_that_says_it_is_complete() -> None:
    assert start_lines()[-1].text.endswith("Application startup complete.")


def test_lines_come_in_the_order_of_their_phases_and_shares() -> None:
    order = [wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP]
    keys = [(order.index(line.phase), line.share) for line in start_lines()]
    assert keys == sorted(keys)


def test_weight_progress_goes_from_nothing_to_all_shards() -> None:
    progress = [line.text for line in start_lines() if "checkpoint shards" in line.text]
    assert progress[0].endswith("  0% Completed | 0/4")
    assert progress[-1].endswith("100% Completed | 4/4")


def test_a_stamp_goes_after_the_level() -> None:
    line = stamps.stamped(logs.load(1, 2, 3, 4, 0.5), 1_700_000_000)
    assert line.startswith("(APIServer pid=1) INFO 11-14 22:13:20 [loggers.py")


def test_an_access_line_has_method_path_and_status() -> None:
    line = logs.access("127.0.0.1:1", "POST", "/v1/chat/completions", 200)
    assert line.endswith('INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK')
