"""Reads the catalogue's data files, and says where each of their numbers comes from."""

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from modelserve import errors

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# So many names fit into a sentence.
FEW = 20
# What lists all of a kind.
_LISTS = {"model": "models", "GPU": "gpus"}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of a catalogue entry: its path there, its value, the source's key and text."""

    path: str
    value: object
    source: str
    source_text: str
    note: str


@functools.cache
def load(name: str) -> Mapping[str, Any]:
    """The data file ``data/<name>.yaml`` as a mapping; read once."""
    text = resources.files("modelserve.catalog").joinpath(f"data/{name}.yaml").read_text("utf-8")
    document: Mapping[str, Any] = yaml.load(text, Loader=_LOADER)
    return document


def figures(name: str, entry: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Every sourced value of ``entry``, an entry of data file ``name``, in the file's order."""
    return tuple(_walk("", entry, load(name)["sources"]))


def _walk(path: str, node: Mapping[str, Any], sources: Mapping[str, str]) -> Iterator[Figure]:
    if isinstance(node.get("source"), str):
        values = {k: v for k, v in node.items() if k not in ("source", "note", "range")}
        value = values.get("value", values)
        source = node["source"]
        yield Figure(path, value, source, sources.get(source, source), str(node.get("note", "")))
        return
    for key, child in node.items():
        if isinstance(child, Mapping):
            yield from _walk(f"{path}.{key}" if path else str(key), child, sources)


def unknown(kind: str, name: str, known: Iterable[str]) -> errors.UnknownName:
    """The error for a name nothing has, with the nearest of ``known``, or how to see them all."""
    by_key = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), by_key, n=3, cutoff=0.5)
    if not near and len(by_key) <= FEW:
        return errors.UnknownName(kind, name, known=tuple(sorted(by_key.values())))
    suggestions = tuple(dict.fromkeys(by_key[word] for word in near))
    command = f"servelab catalog {_LISTS[kind]}" if kind in _LISTS else ""
    return errors.UnknownName(kind, name, suggestions, listed_by=command)
