"""What a cold start is made of: arithmetic that anyone can redo, and measured totals."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelserve import errors
from modelserve.api import names, status
from modelserve.api.spec import EngineType, Loader, Quantization
from modelserve.catalog import gpus, models
from modelserve.decide import coldstart, nodefacts
from modelserve.engines import launch

H100 = gpus.find("h100")
PLAIN = nodefacts.node_rates({})
COLD = nodefacts.CacheState()


def started(model: str = "llama-8b", **changes: Any) -> launch.Launch:
    spec = launch.LaunchSpec(
        engine=EngineType.VLLM,
        model=models.find(model),
        served_name="m",
        tensor_parallel=1,
        quantization=Quantization.NONE,
        max_sequences=256,
        max_batched_tokens=8192,
        max_model_tokens=8192,
        port=8000,
        image="vllm/vllm-openai:v0.33.0",
        storage_class="nvme",
    )
    return launch.resolve(dataclasses.replace(spec, **changes))


def planned(
    wanted: launch.Launch,
    rates: nodefacts.NodeRates = PLAIN,
    cache: nodefacts.CacheState = COLD,
) -> coldstart.Plan:
    return coldstart.plan(wanted, H100, rates, cache)


def test_8b_on_a_cold_h100_node() -> None:
    parts = coldstart.predict(planned(started())).parts()
    assert parts == pytest.approx(
        {
            "schedulingSeconds": 0.05,
            "provisioningSeconds": 0.0,
            "imagePullSeconds": 0.1 * 8.9e9 / 250e6 + 8.9e9 / 120e6,
            "weightLoadSeconds": 0.0001 + 16_060_522_496 / 1.1e9,
            "warmUpSeconds": 9 + 2.5 + 0.65 * 32 + 3 + 1.5 + 2,
            "probeSeconds": 0.025,
            "totalSeconds": 131.2022,
        }
    )


def test_the_explanation_has_the_numbers_in_it() -> None:
    assert coldstart.explain(planned(started())).splitlines() == [
        "image pull 77.7 s: 8.9 GB, download 35.6 s at 250.0 MB/s (registry), "
        "unpack 74.2 s at 120.0 MB/s, overlapped but for a layer",
        "weight load 14.6 s: 16.1 GB at 1.1 GB/s (limit: loader)",
        "warm-up 38.8 s: process start 9.0 s, compile 23.3 s, profile run 3.0 s, "
        "graph capture 1.5 s, API server 2.0 s",
    ]


def test_an_image_on_the_node_takes_next_to_no_time() -> None:
    pull = planned(started(), cache=nodefacts.CacheState(image_present=True)).pull
    assert pull.duration_s == 0.5
    assert pull.binds == "cache"


def test_an_image_in_one_layer_overlaps_nothing() -> None:
    pull = planned(started(engine=EngineType.SGLANG, image="lmsysorg/sglang:v0.5.23")).pull
    assert pull.duration_s == pytest.approx(0.95 * 11e9 / 250e6 + 11e9 / 120e6)


def test_a_slow_registry_binds_and_only_the_last_layer_is_left_to_unpack() -> None:
    rates = nodefacts.node_rates({names.REGISTRY_BANDWIDTH: "50MB/s"})
    pull = planned(started(), rates).pull
    assert pull.binds == "registry"
    assert pull.duration_s == pytest.approx(8.9e9 / 50e6 + 0.1 * 8.9e9 / 120e6)


@pytest.mark.parametrize(
    ("changes", "annotations", "binds", "rate"),
    [
        pytest.param({}, {}, "loader", 1.1e9, id="default-loader"),
        pytest.param({"loader": Loader.STREAMING}, {}, "storage", 5e9, id="device"),
        pytest.param(
            {"loader": Loader.STREAMING},
            {names.STORAGE_READ_BANDWIDTH: "6GB/s"},
            "storage",
            6e9,
            id="node",
        ),
        pytest.param(
            {"loader": Loader.STREAMING},
            {names.STORAGE_SHARED_BANDWIDTH: "3GB/s"},
            "shared storage",
            3e9,
            id="shared",
        ),
        pytest.param({"read_bytes_per_s": 5e8}, {}, "storage.readBandwidth", 5e8, id="spec"),
        pytest.param(
            {"read_bytes_per_s": 9e11, "storage_class": None}, {}, "PCIe", 41.6e9, id="pcie"
        ),
    ],
)
def test_the_lowest_limit_binds_the_weight_load(
    changes: dict[str, Any], annotations: dict[str, str], binds: str, rate: float
) -> None:
    weights = planned(started(**changes), nodefacts.node_rates(annotations)).weights
    assert weights.limit.binds == binds
    assert weights.limit.bytes_per_s == pytest.approx(rate)


def test_weights_in_the_page_cache_are_read_from_memory() -> None:
    weights = planned(started(), cache=nodefacts.CacheState(page_cached=True)).weights
    assert weights.duration_s == pytest.approx(16_060_522_496 / 5e9)


def test_fp8_halves_the_load_of_70b() -> None:
    whole = planned(started("llama-70b", tensor_parallel=4)).weights
    half = planned(started("llama-70b", tensor_parallel=4, quantization=Quantization.FP8)).weights
    assert half.duration_s / whole.duration_s == pytest.approx(0.515, abs=0.001)


def test_the_specs_warm_up_is_shared_out_over_the_parts() -> None:
    plan = planned(started(warm_up_s=45.0))
    assert plan.warm_up_s == pytest.approx(45.0)
    assert [part.name for part in plan.before_weights] == ["process start"]
    assert len(plan.after_weights) == 4


def test_an_eager_engine_neither_compiles_nor_captures() -> None:
    assert planned(started(enforce_eager=True)).warm_up_s == 14.0


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "compile_cached", "seen_s"),
    [
        pytest.param("llama-70b", 4, False, 60.8 + 3 + 16.5, id="70b-cold"),
        pytest.param("llama-70b", 4, True, 38.1, id="70b-compile-cached"),
        pytest.param("qwen3-235b-a22b", 8, True, 88.2, id="235b-compile-cached"),
    ],
)
def test_the_engines_start_is_within_a_fifth_of_what_was_seen(
    model: str, tensor_parallel: int, compile_cached: bool, seen_s: float
) -> None:
    wanted = started(model, tensor_parallel=tensor_parallel)
    cache = nodefacts.CacheState(compile_cached=compile_cached)
    seen = sum(part.duration_s for part in planned(wanted, cache=cache).after_weights)
    assert seen == pytest.approx(seen_s, rel=0.2)


def test_a_node_still_to_come_adds_its_time() -> None:
    plan = planned(started())
    late = coldstart.predict(plan, provisioning_s=95.0)
    assert late.total_s == pytest.approx(coldstart.predict(plan).total_s + 95.0)


def test_a_rate_that_cannot_be_read_names_its_annotation() -> None:
    with pytest.raises(errors.QuantityError, match="unpack-bandwidth"):
        nodefacts.node_rates({names.UNPACK_BANDWIDTH: "quick"})


RATES = st.floats(1e6, 1e12)


@given(
    st.builds(nodefacts.NodeRates, RATES, RATES, RATES, RATES, RATES),
    st.floats(1.0, 100.0),
    st.sampled_from(["registry", "unpack", "storage_read", "storage_shared", "network"]),
)
def test_more_bandwidth_never_makes_a_start_slower(
    rates: nodefacts.NodeRates, factor: float, which: str
) -> None:
    name = f"{which}_bytes_per_s"
    faster = dataclasses.replace(rates, **{name: getattr(rates, name) * factor})
    slow, fast = (coldstart.predict(planned(started(), r)).total_s for r in (rates, faster))
    assert fast <= slow * (1 + 1e-12)


@given(st.floats(0.0, 1e4), st.floats(0.01, 100.0))
def test_a_pull_takes_at_least_its_slower_half_and_at_most_both(
    download_s: float, gigabytes: float
) -> None:
    pull = planned(started(image_bytes=round(gigabytes * 1e9))).pull
    total_s = pull.total_s(download_s)
    assert max(download_s, pull.unpack_s) <= total_s <= download_s + pull.unpack_s + 1e-9


def test_the_next_cold_start_is_expected_from_what_was_measured_but_for_the_image() -> None:
    """The first pulled the image in 78 s; the next one finds it on the node."""
    cached = coldstart.ColdStart(0.1, 0.0, 0.5, 3.0, 39.0, 0.0)
    measured = status.ColdStartParts(
        image_pull_seconds=78.0, weight_load_seconds=4.0, warm_up_seconds=38.0, total_seconds=120.0
    )
    assert coldstart.expected_s(cached, None) == cached.total_s
    assert coldstart.expected_s(cached, measured) == pytest.approx(42.5)
