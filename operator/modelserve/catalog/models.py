"""Models by any name they are known by, from ``data/models.yaml``, or from a shape or config."""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

from modelserve.catalog import architecture, configs, files, shapes
from modelserve.catalog.architecture import Experts as Experts
from modelserve.catalog.architecture import Model as Model


def from_shape(name: str, shape: Mapping[str, Any]) -> Model:
    """A model the catalogue lacks, from ``spec.model.custom``. Raises InputError."""
    return shapes.from_shape(name, shape)


def from_config(config: Mapping[str, Any], name: str = "config.json") -> Model:
    """A model computed from its ``config.json``. Raises InputError."""
    return configs.from_config(config, name)


def find(name: str) -> Model:
    """The entry known by ``name``: hub name, short name or alias, in any case. Raises UnknownName.

    A mirror (another owner, same last part) is the same model under the name it was asked for.
    """
    index, key = _index(), name.strip().lower()
    entry = index.get(key)
    if entry is None and "/" in key:
        entry = index.get(key.rsplit("/", 1)[1])
    if entry is None:
        raise files.unknown("model", name, _spellings())
    if "/" not in name or key == entry.name.lower():
        return entry
    return dataclasses.replace(entry, name=_spellings_by_key().get(key, name.strip()))


@functools.cache
def all_models() -> tuple[Model, ...]:
    """Every model of the catalogue, in the file's order."""
    entries = files.load("models")["models"]
    return tuple(_from_entry(name, entry) for name, entry in entries.items())


def sources(name: str) -> tuple[files.Figure, ...]:
    """Each number of a catalogue entry with its source. Raises UnknownName."""
    short = find(name).short_name
    entries = files.load("models")["models"]
    entry = next(entry for entry in entries.values() if entry["short_name"] == short)
    return files.figures("models", entry)


@functools.cache
def _spellings() -> tuple[str, ...]:
    names: list[str] = []
    for name, entry in files.load("models")["models"].items():
        names += [name, entry["short_name"], *entry.get("aliases", ())]
    return tuple(names)


@functools.cache
def _spellings_by_key() -> Mapping[str, str]:
    return {spelling.lower(): spelling for spelling in _spellings()}


@functools.cache
def _index() -> Mapping[str, Model]:
    index: dict[str, Model] = {}
    by_name = {model.name: model for model in all_models()}
    for name, entry in files.load("models")["models"].items():
        short: str = entry["short_name"]
        aliases = [str(alias) for alias in entry.get("aliases", ())]
        words = [name, short, short.removesuffix("-instruct").removesuffix("-it"), *aliases]
        words += [alias.rsplit("/", 1)[1] for alias in aliases if "/" in alias]
        for word in words:
            index.setdefault(word.lower(), by_name[name])
    return index


def _from_entry(name: str, entry: Mapping[str, Any]) -> Model:
    shape, checkpoint = entry["architecture"], entry["checkpoint_bytes"]
    kv, moe = entry["kv_bytes_per_token"], entry.get("moe")
    return Model(
        name=name,
        short_name=entry["short_name"],
        family=entry["family"],
        layers=shape["layers"],
        hidden=shape["hidden"],
        intermediate=shape["intermediate"],
        heads=shape["heads"],
        kv_heads=shape["kv_heads"],
        head_dim=shape["head_dim"],
        vocab=shape["vocab"],
        tied_embeddings=shape["tied_embeddings"],
        max_context_tokens=shape["max_context"],
        dtype=shape["dtype"],
        parameters=entry["parameters"]["total"],
        active_parameters=entry["parameters"]["active"],
        weight_bytes_none=checkpoint["none"]["value"],
        weight_bytes_fp8=checkpoint["fp8"]["value"],
        weight_bytes_int4=checkpoint["int4"]["value"],
        read_bytes_batch_1=entry["read_bytes_per_step_batch_1"]["value"],
        kv_bytes_per_token=kv["value"],
        kv_bytes_per_token_beyond_window=kv.get("beyond_window", kv["value"]),
        window_tokens=entry["sliding_window"]["window"] if "sliding_window" in entry else None,
        latent_kv="mla" in entry,
        experts=_experts(moe) if moe else None,
    )


def _experts(moe: Mapping[str, Any]) -> Experts:
    return architecture.Experts(
        count=moe["experts"],
        per_token=moe["experts_per_token"],
        intermediate=moe["expert_intermediate"],
        shared=moe["shared_experts"],
        dense_first_layers=moe["dense_first_layers"],
    )
