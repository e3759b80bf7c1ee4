"""Who of a replica reads what of its checkpoint."""

import shlex

import pytest

from modelserve.api import names
from modelserve.catalog import gpus, storage
from modelserve.decide import coldstart, moving, nodefacts
from modelserve.engines import launch, streaming, types

H100 = gpus.find("h100-sxm")
MODEL = "meta-llama/Llama-3.1-70B-Instruct"
VLLM = f"vllm serve {MODEL} --load-format runai_streamer"
SGLANG = f"python3 -m sglang.launch_server --model-path {MODEL} --load-format runai_streamer"
DIVIDED = """ --model-loader-extra-config '{"distributed": true, "concurrency": 32}'"""
NO_RATES = nodefacts.node_rates({})


def parsed(words: str, storage_class: str = "s3") -> types.Launch:
    container = {"image": "x", "command": shlex.split(words)}
    found = launch.parse(container, {names.STORAGE_CLASS: storage_class}, H100)
    assert found is not None
    return found


def read(words: str, storage_class: str = "s3", *, warm: bool = False) -> moving.Transfer:
    return coldstart.weights(parsed(words, storage_class), H100, NO_RATES, warm=warm)


@pytest.mark.parametrize(
    ("words", "times"),
    [
        (VLLM, 1),
        (VLLM + " --tensor-parallel-size 4", 4),
        (VLLM + " --tensor-parallel-size 4" + DIVIDED, 1),
        (VLLM + " -tp 4 --model-loader-extra-config '{\"concurrency\": 32}'", 4),
        (VLLM.replace("runai_streamer", "runai_streamer_sharded") + " -tp 4", 1),
        (f"vllm serve {MODEL} --tensor-parallel-size 4", 1),
        (SGLANG + " --tp 2", 2),
        (SGLANG + " --tp 2" + DIVIDED, 1),
    ],
)
def test_each_rank_streams_everything_unless_told_to_divide_it(words: str, times: int) -> None:
    assert streaming.whole_reads(parsed(words)) == times


def test_objects_cross_the_network_once_a_rank() -> None:
    whole = read(VLLM + " -tp 4")
    once = read(VLLM + " -tp 4" + DIVIDED)
    assert whole.n_bytes == once.n_bytes
    assert whole.duration_s - whole.latency_s == pytest.approx(
        4 * (once.duration_s - once.latency_s)
    )


def test_files_are_read_from_their_device_once_and_copied_once_a_rank() -> None:
    whole, size = read(VLLM + " -tp 4", "nvme"), read(VLLM, "nvme").n_bytes
    memory = storage.find("page-cache").streaming_loader.node_bytes_per_s or 0
    assert whole.moved_bytes == size
    assert whole.duration_s == pytest.approx(4 * size / memory, rel=0.001)
    # A slow device is what binds, whoever reads.
    slow = read(VLLM + " -tp 4", "efs")
    assert slow.duration_s == pytest.approx(read(VLLM + " -tp 4" + DIVIDED, "efs").duration_s)


def test_what_is_in_the_page_cache_is_copied_once_a_rank() -> None:
    whole = read(VLLM + " -tp 4", "nvme", warm=True)
    once = read(VLLM + " -tp 4" + DIVIDED, "nvme", warm=True)
    assert whole.duration_s == pytest.approx(4 * once.duration_s)


def test_our_own_replicas_divide_it() -> None:
    spec = launch.parse_spec({"image": "x", "command": shlex.split(VLLM + " -tp 4" + DIVIDED)}, {})
    assert spec is not None
    words = launch.render(spec)
    assert '--model-loader-extra-config={"distributed":true}' in words.args
    again = launch.parse({"command": [*words.command], "args": [*words.args]}, {}, H100)
    assert again is not None
    assert streaming.whole_reads(again) == 1
