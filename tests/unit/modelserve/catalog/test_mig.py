"""Slices of GPUs as GPUs of their own."""

import pytest

from modelserve import errors
from modelserve.catalog import constants, gpus, mig
from modelserve.engines import kv

H100 = gpus.find("h100-sxm")


def test_a_slice_is_found_by_the_label_of_its_nodes() -> None:
    found = gpus.find("NVIDIA-H100-80GB-HBM3-MIG-3g.40gb-SHARED")
    assert found is gpus.find(found.key)
    assert found.title == "NVIDIA H100 80GB HBM3 MIG 3g.40gb"
    assert found.product_label == "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"


def test_it_has_its_part_of_the_gpu() -> None:
    found = gpus.find("h100-sxm-mig-1g.10gb")
    assert found.bandwidth_bytes_per_s == H100.bandwidth_bytes_per_s / 8
    assert found.flops_16_bit == pytest.approx(H100.flops_16_bit * 16 / 132)
    assert found.driver_memory_mib == 9685
    assert found.pcie_bytes_per_s == H100.pcie_bytes_per_s
    assert not found.fast_link


@pytest.mark.parametrize("gpu", [g for g in gpus.all_gpus() if mig.capable(g)], ids=lambda g: g.key)
def test_a_larger_slice_has_no_less_of_anything(gpu: gpus.Gpu) -> None:
    cut = [gpus.cut(gpu, profile) for profile in mig.profiles(gpu)]
    for less, more in zip(cut, [*cut[1:], gpu], strict=True):
        assert less.driver_memory_mib <= more.driver_memory_mib
        assert less.bandwidth_bytes_per_s <= more.bandwidth_bytes_per_s
        assert less.flops_16_bit <= more.flops_16_bit


def test_all_of_its_memory_is_an_engines() -> None:
    found = gpus.find("h100-sxm-mig-1g.10gb")
    fixed = constants.load()
    assert kv.usable_bytes(found, 1.0) == found.driver_memory_bytes - fixed.activation_reserve_bytes
    assert kv.usable_bytes(H100, 1.0) < H100.driver_memory_bytes - fixed.activation_reserve_bytes


@pytest.mark.parametrize("name", ["h100-sxm-mig-1g.5gb", "NVIDIA-L4-MIG-1g.10gb"])
def test_a_gpu_that_cannot_be_cut_so_is_told(name: str) -> None:
    with pytest.raises(errors.UnknownName, match="unknown MIG profile of NVIDIA-"):
        gpus.find(name)


def test_sources_are_the_whole_gpus() -> None:
    assert gpus.sources("h100-sxm-mig-1g.10gb") == gpus.sources("h100-sxm")
