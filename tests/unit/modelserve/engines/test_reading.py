"""Who of a replica reads what of its checkpoint."""

import shlex

import pytest

from modelserve.api import names
from modelserve.catalog import gpus, storage
from modelserve.catalog.storage import Way
from modelserve.decide import coldstart, moving, nodefacts
from modelserve.engines import launch, reading, types

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
    assert reading.of(parsed(words)).times == times


def test_objects_cross_the_network_once_a_rank() -> None:
    whole = read(VLLM + " -tp 4")
    once = read(VLLM + " -tp 4" + DIVIDED)
    assert whole.n_bytes == once.n_bytes
    assert whole.duration_s - whole.latency_s == pytest.approx(
        4 * (once.duration_s - once.latency_s)
    )


def test_files_are_read_from_their_device_once_and_copied_once_a_rank() -> None:
    whole, size = read(VLLM + " -tp 4", "nvme"), read(VLLM, "nvme").n_bytes
    memory = storage.find("page-cache").loader_bytes_per_s("streaming", 4)
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
    assert reading.of(again).times == 1


FILES = f"vllm serve {MODEL} -tp 4"
FAST = " --load-format fastsafetensors"
EAGER = " --safetensors-load-strategy eager"


@pytest.mark.parametrize(
    ("words", "where", "way"),
    [
        (FILES, "nvme", Way.MAPPED),
        (FILES, "nfs", Way.PREFETCH),
        (FILES, "lustre", Way.PREFETCH),
        (FILES + " --safetensors-load-strategy lazy", "nfs", Way.MAPPED),
        (FILES + " --safetensors-load-strategy prefetch", "ebs-gp3", Way.PREFETCH),
        (FILES + EAGER, "nfs", Way.EAGER),
        (FILES + EAGER, "s3", Way.MAPPED),
        (FILES + FAST, "nvme", Way.FASTSAFETENSORS),
        (FILES + FAST, "s3", Way.MAPPED),
        (FILES + " --load-format sharded_state", "nfs", Way.MAPPED),
        (FILES + " --load-format tensorizer", "s3", Way.TENSORIZER),
        (f"{SGLANG[: -len(' --load-format runai_streamer')]}", "nfs", Way.MAPPED),
        (f"{SGLANG.partition(' --load')[0]} --weight-loader-disable-mmap", "nfs", Way.EAGER),
        (
            f"{SGLANG.partition(' --load')[0]} --weight-loader-prefetch-checkpoints",
            "nvme",
            Way.PREFETCH,
        ),
        (f"trtllm-serve {MODEL}", "nvme", Way.PREFETCH),
    ],
)
def test_arguments_storage_and_engine_say_how_weights_are_read(
    words: str, where: str, way: Way
) -> None:
    assert reading.of(parsed(words, where)).way is way


def test_an_older_vllm_does_not_prefetch_by_itself() -> None:
    container = {"image": "vllm/vllm-openai:v0.11.0", "command": shlex.split(FILES)}
    found = launch.parse(container, {names.STORAGE_CLASS: "nfs"}, H100)
    assert found is not None
    assert reading.of(found).way is Way.MAPPED


def test_eager_ranks_read_each_file_whole_in_one_stream() -> None:
    eager, size = read(FILES + EAGER, "nvme"), read(FILES, "nvme").n_bytes
    assert eager.moved_bytes == size
    # 4 ranks of 1.1 GB/s from the drive, and as many copies out of memory at 8.9 GB/s in all.
    assert eager.limit == moving.Limit(moving.Binds.PAGE_CACHE, 8.9e9 / 4, shared=False)


def test_prefetched_files_come_as_fast_as_the_device_gives_them() -> None:
    lazy = read(FILES + " --safetensors-load-strategy lazy", "nfs")
    ahead = read(FILES, "nfs")
    assert ahead.limit.bytes_per_s == 1e9
    # Four ranks that map reach 1.3 GB/s together, more than the server's card: the same.
    assert lazy.duration_s == pytest.approx(ahead.duration_s)
    one = f"vllm serve {MODEL}"
    alone = read(one + " --safetensors-load-strategy lazy", "nfs")
    assert alone.limit.binds is moving.Binds.LOADER
    assert alone.duration_s > 3 * read(one, "nfs").duration_s


def test_dummy_weights_are_read_from_nowhere() -> None:
    assert read(FILES + " --load-format dummy", "nfs").duration_s == 0


@pytest.mark.parametrize(
    ("words", "where", "n_bytes", "seconds"),
    [
        # Read by Run:ai's benchmark (15 GB) and vLLM's pull request 10647 (13.5 GB).
        ("tensorizer", "s3", 15e9, 37.36),
        ("tensorizer", "ebs-gp3", 15e9, 16.11),
        ("tensorizer", "ebs-io2", 15e9, 10.36),
        ("fastsafetensors", "nvme", 13.5e9, 3.67),
    ],
)
def test_measured_loads_are_met(words: str, where: str, n_bytes: float, seconds: float) -> None:
    found = read(f"vllm serve {MODEL} --load-format {words}", where)
    assert n_bytes / found.limit.bytes_per_s == pytest.approx(seconds, rel=0.02)
