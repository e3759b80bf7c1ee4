"""nvidia-smi in a container that has slices of GPUs."""

import dataclasses
from typing import Any

import pytest

from modelserve.catalog import gpus, mig
from servelab.node.gpus import devices, migtable, readings, smi

GPU = gpus.find("NVIDIA-H100-80GB-HBM3")
DEVICES = devices.of_node("n", 2)


def part(profile: str, device: int = 0, number: int = 0, **use: Any) -> migtable.Slice:
    found = mig.profiles(GPU)[profile]
    uuid = DEVICES[device].uuid
    made = migtable.of_gpu(GPU, uuid, found, f"MIG-{profile}-{device}-{number}", number)
    return dataclasses.replace(made, **use)


def view(*cut: migtable.Slice) -> smi.View:
    held = {each.gpu_uuid for each in cut}
    seen = [readings.read(device, GPU) for device in DEVICES if device.uuid in held]
    return smi.View(seen, "570.172.08", "12.8", 0.0, cut)


def test_the_gpu_of_a_slice_tells_little_of_itself() -> None:
    lines = smi.table(view(part("1g.10gb"))).splitlines()
    gpu = next(number for number, line in enumerate(lines) if "NVIDIA H100 80GB HBM3" in line)
    assert lines[gpu].endswith("|                   On |")
    assert lines[gpu + 1].endswith("|                    N/A |     N/A      Default |")
    assert lines[gpu + 2].endswith("|              Enabled |")


def test_slices_stand_in_a_table_of_their_own() -> None:
    lines = smi.table(view(part("3g.40gb", used_mib=9826), part("1g.10gb", 1, 1))).splitlines()
    rows = lines[lines.index(next(line for line in lines if "MIG devices:" in line)) :]
    assert rows[6] == (
        "|  0    1   0   0  |            9826MiB / 40004MiB    |"
        " 60      0 |  3   0    3    0    3 |"
    )
    assert rows[9].startswith("|  1    8   0   0  |               0MiB /  9685MiB    | 16      0 |")
    assert rows[10].startswith("|                  |                 0MiB / 16383MiB  |")


def test_processes_are_told_with_their_instance() -> None:
    used = part("2g.20gb", number=1, used_mib=500, pid=77, process="python3")
    row = next(line for line in smi.table(view(used)).splitlines() if "python3" in line)
    assert row == f"|    0    4    0               77      C   {'python3':<36}    500MiB |"


def test_all_lines_are_of_one_width() -> None:
    used = part("7g.80gb", used_mib=70_000, pid=1_234_567, process="VLLM::EngineCore")
    lines = smi.table(view(used, part("1g.10gb", device=1))).splitlines()[1:]
    assert {len(line) for line in lines if line.strip()} == {91}


def test_the_list_has_slices_under_their_gpu() -> None:
    one = part("3g.40gb")
    assert smi.listing(view(one)) == (
        f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {one.gpu_uuid})\n"
        f"  MIG 3g.40gb     Device  0: (UUID: {one.uuid})\n"
    )


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("memory.used", "[Insufficient Permissions]"),
        ("utilization.gpu", "[N/A]"),
        ("mig.mode.current", "Enabled"),
        ("name", "NVIDIA H100 80GB HBM3"),
    ],
)
def test_queries_tell_what_a_container_may_know(field: str, told: str) -> None:
    found, fault = smi.query(view(part("1g.10gb")), [field], ["csv", "noheader"])
    assert (found, fault) == (f"{told}\n", "")


def test_instances_are_counted_by_size() -> None:
    wanted = {"7g.80gb": [0], "4g.40gb": [1], "3g.40gb": [1, 2], "2g.20gb": [3, 4, 5]}
    for profile, instances in wanted.items():
        found = [part(profile, number=n).instance for n in range(len(instances))]
        assert found == instances
