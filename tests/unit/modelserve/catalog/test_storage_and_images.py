"""Storage classes, images and warm-up constants against the measured rows."""

from typing import Any

import pytest

from modelserve import errors
from modelserve.api.spec import EngineType
from modelserve.catalog import files, images, storage, warmup

LOADS: list[dict[str, Any]] = files.load("storage")["measured_loads_15_gb"]["rows"]


@pytest.mark.parametrize(
    "name",
    [
        "nvme",
        "nvme-raid",
        "s3",
        "gcs",
        "nfs",
        "ebs-gp3",
        "ebs-io2",
        "efs",
        "hyperdisk-ml",
        "lustre",
        "page-cache",
    ],
)
def test_the_usual_storage_classes_are_known(name: str) -> None:
    assert storage.find(name.upper()).name == name


@pytest.mark.parametrize("row", LOADS, ids=lambda row: f"{row['class']}-{row['loader']}")
def test_a_measured_load_is_met_within_a_tenth(row: dict[str, Any]) -> None:
    where = storage.find(row["class"])
    rate = min(where.read_bytes_per_s, where.loader_bytes_per_s(row["loader"]))
    assert 15e9 / rate + where.latency_s == pytest.approx(row["read_s"], rel=0.1)


def test_a_loader_reaches_more_with_more_ranks_up_to_the_node() -> None:
    nvme = storage.find("nvme")
    assert [nvme.loader_bytes_per_s("default", ranks) for ranks in (1, 2, 8)] == [
        1.1e9,
        2.2e9,
        4.3e9,
    ]


def test_an_unknown_class_comes_with_near_names() -> None:
    with pytest.raises(errors.UnknownName, match="did you mean nvme"):
        storage.find("nvm")


@pytest.mark.parametrize("entry", storage.all_classes(), ids=lambda entry: entry.name)
def test_every_class_names_its_sources(entry: storage.StorageClass) -> None:
    known = files.load("storage")["sources"]
    assert all(figure.source in known for figure in storage.sources(entry.name))


@pytest.mark.parametrize(
    ("reference", "engine"),
    [
        ("vllm/vllm-openai:v0.11.0", EngineType.VLLM),
        ("docker.io/vllm/vllm-openai", EngineType.VLLM),
        ("mirror.local:5000/team/vllm-openai@sha256:00", EngineType.VLLM),
        ("lmsysorg/sglang:latest", EngineType.SGLANG),
        ("ghcr.io/huggingface/text-generation-inference:3.0", EngineType.TGI),
        ("nvcr.io/nim/mistralai/mistral-7b-instruct-v0.3:1.8", EngineType.NIM),
    ],
)
def test_images_are_known_by_repository(reference: str, engine: EngineType) -> None:
    found = images.find(reference)
    assert found is not None
    assert found.engine is engine


def test_other_images_are_unknown() -> None:
    assert images.find("nginx:1.29") is None


@pytest.mark.parametrize("engine", list(EngineType))
def test_every_engine_has_an_image_and_a_warm_up(engine: EngineType) -> None:
    image = images.of_engine(engine)
    assert image.engine is engine
    assert 1e9 < image.compressed_bytes < image.unpacked_bytes
    assert warmup.of_engine(engine).process_start_s > 0


def test_amd_gpus_take_the_rocm_image() -> None:
    assert images.of_engine(EngineType.VLLM, amd=True).repository == "rocm/vllm"


@pytest.mark.parametrize(
    ("layers", "tensor_parallel", "cached", "seen_s"),
    [
        (24, 1, False, 18.1),
        (28, 1, False, 21.5),
        (32, 1, False, 23.2),
        (48, 1, False, 33.7),
        (80, 4, False, 60.8),
        (32, 1, True, 5.5),
        (80, 4, True, 15.9),
        (94, 8, True, 23.0),
    ],
)
def test_compile_times_are_near_what_was_seen(
    layers: int, tensor_parallel: int, cached: bool, seen_s: float
) -> None:
    predicted_s = warmup.of_engine(EngineType.VLLM).compile_s(layers, tensor_parallel, cached)
    assert predicted_s == pytest.approx(seen_s, rel=0.06)


@pytest.mark.parametrize(("layers", "tensor_parallel", "seen_s"), [(80, 4, 16.5), (94, 8, 44.0)])
def test_graph_capture_is_near_what_was_seen(
    layers: int, tensor_parallel: int, seen_s: float
) -> None:
    predicted_s = warmup.of_engine(EngineType.VLLM).graph_capture_s(layers, tensor_parallel, 256)
    assert predicted_s == pytest.approx(seen_s, rel=0.05)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("busybox", "docker.io/library/busybox:latest"),
        ("vllm/vllm-openai:v1", "docker.io/vllm/vllm-openai:v1"),
        ("quay.io/a/b", "quay.io/a/b:latest"),
        ("localhost:5000/a:1", "localhost:5000/a:1"),
        ("a/b@sha256:00", "docker.io/a/b@sha256:00"),
    ],
)
def test_names_are_filled_in(name: str, full: str) -> None:
    assert images.canonical(name) == full
