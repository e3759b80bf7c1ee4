"""GPUs: names, and the figures decisions rest on."""

import pytest

from modelserve import errors
from modelserve.catalog import gpus


def test_the_catalogue_has_23_gpus() -> None:
    assert len(gpus.all_gpus()) == 23


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA-H100-80GB-HBM3", "h100-sxm"),
        ("nvidia h100 80gb hbm3", "h100-sxm"),
        ("H100", "h100-sxm"),
        ("h100-sxm", "h100-sxm"),
        ("NVIDIA-A100-SXM4-80GB", "a100-sxm-80g"),
        ("NVIDIA-L4-SHARED", "l4"),
        ("AMD_Instinct_MI300X_OAM", "mi300x"),
        ("Tesla-T4", "t4"),
    ],
)
def test_any_known_spelling_finds_the_gpu(name: str, key: str) -> None:
    assert gpus.find(name).key == key


def test_an_unknown_gpu_comes_with_near_names() -> None:
    with pytest.raises(errors.UnknownName, match=r"unknown GPU 'H101'.*h100"):
        gpus.find("H101")


@pytest.mark.parametrize("gpu", gpus.all_gpus(), ids=lambda gpu: gpu.key)
def test_every_label_and_alias_finds_its_gpu(gpu: gpus.Gpu) -> None:
    for word in (gpu.key, gpu.product_label, *gpu.aliases):
        assert gpus.find(word) is gpu


@pytest.mark.parametrize("gpu", gpus.all_gpus(), ids=lambda gpu: gpu.key)
def test_every_gpu_has_sensible_figures(gpu: gpus.Gpu) -> None:
    assert 0.9 < gpu.driver_memory_bytes / gpu.memory_bytes < 1.13
    assert 1e11 < gpu.bandwidth_bytes_per_s < 1e13
    assert gpu.flops_fp8 is None or gpu.flops_fp8 > gpu.flops_16_bit
    assert gpu.resource_name == (
        "amd.com/gpu" if gpu.compute_major_minor is None else "nvidia.com/gpu"
    )


def test_the_bridge_of_an_h100_nvl_joins_two() -> None:
    nvl = gpus.find("h100-nvl")
    assert nvl.link(2) == (True, 300e9)
    assert nvl.link(4) == (False, 64e9)


def test_four_bit_weights_are_multiplied_at_16_bit() -> None:
    h100 = gpus.find("h100")
    assert h100.flops("int4") == h100.flops_16_bit
    assert h100.flops("fp8") == 1978e12
    assert not gpus.find("a100").supports_fp8()
