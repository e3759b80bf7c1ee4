"""The catalogue as rows for people and programs: units in the keys, source keys in a column."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modelserve.api.spec import EngineType
from modelserve.catalog import files, gpus, images, models, storage
from modelserve.engines import profiles

KINDS = ("models", "gpus", "storage", "images", "engines")

Row = dict[str, Any]


def rows(kind: str) -> list[Row]:
    """One row per entry, in the catalogue's order."""
    return _ROWS[kind]()


def matching(found: Sequence[Row], word: str | None) -> list[Row]:
    """The rows in which ``word`` occurs, in any case; all without one."""
    if word is None:
        return list(found)
    return [
        row for row in found if any(word.lower() in str(value).lower() for value in row.values())
    ]


def entry(kind: str, name: str) -> Row:
    """One entry in full, ``figures`` last: each number with its source. Raises UnknownName."""
    return _ENTRIES[kind](name)


def _models() -> list[Row]:
    return [
        {
            "name": model.name,
            "short name": model.short_name,
            "parameters (1e9)": round(model.parameters / 1e9, 3),
            "active (1e9)": round(model.active_parameters / 1e9, 3),
            "weights none (GB)": _gb(model.weight_bytes("none")),
            "fp8 (GB)": _gb(model.weight_bytes("fp8")),
            "int4 (GB)": _gb(model.weight_bytes("int4")),
            "KV (kB/token)": round(model.kv_bytes_per_token / 1e3, 1),
            "context (tokens)": model.max_context_tokens,
            "sources": _sources(models.sources(model.name)),
        }
        for model in models.all_models()
    ]


def _gpus() -> list[Row]:
    return [
        {
            "name": gpu.key,
            "product label": gpu.product_label,
            "memory (GB)": _gb(gpu.memory_bytes),
            "bandwidth (GB/s)": round(gpu.bandwidth_bytes_per_s / 1e9),
            "16 bit (TFLOP/s)": round(gpu.flops_16_bit / 1e12),
            "fp8 (TFLOP/s)": None if gpu.flops_fp8 is None else round(gpu.flops_fp8 / 1e12),
            "link": gpu.link_kind,
            "link (GB/s one way)": round(gpu.link_bytes_per_s / 1e9),
            "a node has": gpu.gpus_per_node,
            "sources": _sources(gpus.sources(gpu.key)),
        }
        for gpu in gpus.all_gpus()
    ]


def _storage() -> list[Row]:
    return [
        {
            "name": one.name,
            "what": one.title,
            "read (GB/s)": _gb(one.read_bytes_per_s),
            "shared backend (GB/s)": _optional_gb(one.shared_bytes_per_s),
            "latency (ms)": round(one.latency_s * 1e3, 3),
            "default loader (GB/s)": _gb(one.loader_bytes_per_s("default")),
            "streaming loader (GB/s)": _gb(one.loader_bytes_per_s("streaming")),
            "sources": _sources(storage.sources(one.name)),
        }
        for one in storage.all_classes()
    ]


def _images() -> list[Row]:
    return [
        {
            "name": image.reference,
            "engine": image.engine.value,
            "compressed (GB)": _gb(image.compressed_bytes),
            "unpacked (GB)": _gb(image.unpacked_bytes),
            "largest layer (share)": image.largest_layer_share,
            "sources": _sources(files.figures("images", raw)),
        }
        for image, raw in _raw_images()
    ]


def _engines() -> list[Row]:
    return [
        {
            "name": engine.value,
            "title": profile.title,
            "version": profile.version,
            "port": profile.default_port,
            "health": profile.health_path,
            "metrics": profile.metrics_path,
            "start-up sources": _sources(files.figures("warmup", _raw_engine(engine))),
        }
        for engine in EngineType
        for profile in (profiles.of(engine),)
    ]


def _model(name: str) -> Row:
    return {**_fields(models.find(name)), "figures": _figures(models.sources(name))}


def _gpu(name: str) -> Row:
    return {**_fields(gpus.find(name)), "figures": _figures(gpus.sources(name))}


def _storage_class(name: str) -> Row:
    return {**_fields(storage.find(name)), "figures": _figures(storage.sources(name))}


def _image(name: str) -> Row:
    found = images.find(name)
    if found is None:
        raise files.unknown("image", name, [image.reference for image in images.all_images()])
    raw = next(raw for image, raw in _raw_images() if image == found)
    return {**_fields(found), "figures": _figures(files.figures("images", raw))}


def _engine(name: str) -> Row:
    key = name.strip().lower()
    if key not in {engine.value for engine in EngineType}:
        raise files.unknown("engine", name, [engine.value for engine in EngineType])
    engine = EngineType(key)
    figures = files.figures("warmup", _raw_engine(engine))
    return {**_fields(profiles.of(engine)), "figures": _figures(figures)}


def _raw_images() -> list[tuple[images.Image, Mapping[str, Any]]]:
    return list(zip(images.all_images(), files.load("images")["images"], strict=True))


def _raw_engine(engine: EngineType) -> Mapping[str, Any]:
    raw: Mapping[str, Any] = files.load("warmup")["engines"][engine.value]
    return raw


def _fields(one: Any) -> Row:
    return dict(dataclasses.asdict(one))


def _figures(found: Sequence[files.Figure]) -> list[Row]:
    return [dataclasses.asdict(figure) for figure in found]


def _sources(found: Sequence[files.Figure]) -> str:
    return ", ".join(sorted({figure.source for figure in found}))


def _gb(amount: float) -> float:
    return float(f"{amount / 1e9:.4g}")


def _optional_gb(amount: float | None) -> float | None:
    return None if amount is None else _gb(amount)


_ROWS: Mapping[str, Callable[[], list[Row]]] = {
    "models": _models,
    "gpus": _gpus,
    "storage": _storage,
    "images": _images,
    "engines": _engines,
}
_ENTRIES: Mapping[str, Callable[[str], Row]] = {
    "models": _model,
    "gpus": _gpu,
    "storage": _storage_class,
    "images": _image,
    "engines": _engine,
}
