"""Which GPUs pods have, and what their sensors read."""

from hypothesis import given
from hypothesis import strategies as st

from modelserve.api import wire
from modelserve.catalog import gpus
from modelserve.engines import launch
from servelab.engine import metering
from servelab.node.gpus import boards, dcgm, devices, readings

GPU = gpus.find("NVIDIA-H100-80GB-HBM3")
DEVICE = devices.of_node("dgx-0", 1)[0]
CONTAINER = {
    "name": "engine",
    "image": "vllm/vllm-openai:v0.33.0",
    "args": ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"],
}


def launched() -> launch.Launch:
    """vLLM with an 8B model."""
    found = launch.parse(CONTAINER, {}, GPU)
    assert found is not None
    return found


LAUNCH = launched()
WEIGHTS = LAUNCH.model.weight_bytes(LAUNCH.quantization)


def load(share: float, steps: int = 100, tokens: int = 3200) -> metering.Load:
    return metering.Load(running=32, kv_usage=0.3, busy_s=share, steps=steps, tokens=tokens)


def use(doing: readings.Activity, used_bytes: int = 1) -> readings.Use:
    return readings.Use(readings.Holder("default", "p", "engine"), used_bytes, doing)


def stamps(**ended: int) -> wire.PhaseStamps:
    """A start of which these phases are known, by when they ended (0: not yet), all from 1 s on."""
    found = (
        wire.PhaseStamp(wire.Phase(name), 1000, end_ms, planned_ms=10_000)
        for name, end_ms in ended.items()
    )
    return wire.PhaseStamps(1.0, tuple(found))


def test_gpus_are_the_same_whenever_they_are_asked_for() -> None:
    assert devices.of_node("a", 8) == devices.of_node("a", 8)
    found = {d.uuid for node in ("a", "b") for d in devices.of_node(node, 16)}
    assert len(found) == 32


@given(st.floats(0, 1), st.floats(0, 1))
def test_more_work_heats_more(one: float, other: float) -> None:
    less, more = sorted((one, other))
    found = [
        readings.read(
            DEVICE, GPU, [use(readings.activity(metering.Load(), load(s), 1.0, LAUNCH, GPU))]
        )
        for s in (less, more)
    ]
    board = boards.of(GPU)
    assert board.idle_w <= found[0].power_w <= found[1].power_w <= board.limit_w
    assert found[0].temperature_c <= found[1].temperature_c


def test_a_decode_is_bound_by_memory_and_a_prefill_by_tensor_cores() -> None:
    idle = metering.Load()
    decode = readings.activity(idle, load(1.0, 120, 120 * 8), 1.0, LAUNCH, GPU)
    prefill = readings.activity(idle, load(1.0, 5, 25_000), 1.0, LAUNCH, GPU)
    assert decode.traffic > 0.5 > decode.tensor
    assert prefill.tensor > 0.3 > prefill.traffic


def test_counters_that_fell_tell_of_another_engine() -> None:
    assert readings.activity(load(1.0), load(0.5, 5), 1.0, LAUNCH, GPU) == readings.IDLE


def test_memory_fills_as_the_engine_starts() -> None:
    at = [
        readings.engine_bytes(LAUNCH, GPU, stamps(), 1000),
        readings.engine_bytes(LAUNCH, GPU, stamps(WeightLoad=0), 6000),
        readings.engine_bytes(LAUNCH, GPU, stamps(WeightLoad=11_000, WarmUp=0), 12_000),
        readings.engine_bytes(LAUNCH, GPU, stamps(WeightLoad=1, WarmUp=2, Probe=0), 20_000),
    ]
    assert at[0] == readings.CONTEXT_BYTES
    assert at[1] == readings.CONTEXT_BYTES + round(WEIGHTS / 2)
    assert at[2] == readings.CONTEXT_BYTES + WEIGHTS
    assert 0.88 * GPU.driver_memory_bytes < at[3] < 0.92 * GPU.driver_memory_bytes


def test_who_share_a_gpu_add_up_and_see_their_own_processes() -> None:
    half = readings.Activity(0.7, 0.1, 0.5)
    other = readings.Use(readings.Holder("default", "q", "engine"), 1 << 30, half)
    found = readings.read(DEVICE, GPU, [use(half, 1 << 30), other])
    assert (found.used_bytes, found.activity.busy) == (2 << 30, 1.0)
    mine = readings.seen_by(found, ("default", "q", "engine"))
    assert (mine.used_bytes, mine.holders) == (found.used_bytes, (other.holder,))


def test_every_gpu_of_the_catalogue_that_nvidia_makes_has_a_board() -> None:
    known = {gpu.key for gpu in gpus.all_gpus() if not gpu.amd}
    assert known == boards.BOARDS.keys()


def test_an_xid_error_is_exported() -> None:
    use_ = readings.Use(readings.Holder("default", "p", "engine"), xid=79)
    broken = readings.read(DEVICE, GPU, [use_])
    text = dcgm.render("570.172.08", [("dgx-0", broken)])
    assert 'DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-' in text
    assert text.split("DCGM_FI_DEV_XID_ERRORS{")[1].split("} ")[1].startswith("79\n")
