"""The chart's README tells every value: UPDATE_GOLDEN=1 writes its table from values.yaml."""

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import yaml

BEGIN, END = "<!-- values -->\n", "<!-- end of values -->\n"


def _nodes(node: yaml.MappingNode, path: str = "") -> Iterator[tuple[str, yaml.Node, int]]:
    """Every key: its path, its value, and its line from 0."""
    for key, value in node.value:
        yield f"{path}{key.value}", value, key.start_mark.line
        if isinstance(value, yaml.MappingNode):
            yield from _nodes(value, f"{path}{key.value}.")


def _composed(text: str) -> list[tuple[str, yaml.Node, int]]:
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    return list(_nodes(root))


def rows(text: str) -> Iterator[tuple[str, Any, str]]:
    """Path, default and description of what has a comment of its own above it."""
    lines = text.splitlines()
    for path, value, line in _composed(text):
        _, sign, told = lines[line - 1].partition("# -- ")
        if sign:
            yield path, yaml.safe_load(yaml.serialize(value)), told


def table(text: str) -> str:
    written = [
        f"| `{path}` | `{json.dumps(default)}` | {told} |\n" for path, default, told in rows(text)
    ]
    return "| Value | Default | |\n|---|---|---|\n" + "".join(written)


def test_every_value_has_a_description(chart: pathlib.Path) -> None:
    text = (chart / "values.yaml").read_text()
    told = {path for path, _, _ in rows(text)}
    ends = [p for p, value, _ in _composed(text) if not getattr(value, "value", None)]
    plain = [p for p, value, _ in _composed(text) if isinstance(value, yaml.ScalarNode)]
    inside = tuple(f"{path}." for path in told)
    assert [p for p in {*ends, *plain} if p not in told and not p.startswith(inside)] == []


def test_the_readme_has_all_values_with_their_defaults(chart: pathlib.Path) -> None:
    readme = chart / "README.md"
    before, _, rest = readme.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    wanted = before + BEGIN + "\n" + table((chart / "values.yaml").read_text()) + "\n" + END + after
    if os.environ.get("UPDATE_GOLDEN"):
        readme.write_text(wanted)
    assert readme.read_text() == wanted


def test_the_schema_knows_every_value_and_no_other(chart: pathlib.Path) -> None:
    schema = json.loads((chart / "values.schema.json").read_text())
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert schema["properties"].keys() - values.keys() == {"global"}
    shared = values["pods"].keys()
    for section, kept in values.items():
        if isinstance(kept, dict):
            known = schema["properties"][section]["properties"].keys()
            assert known - kept.keys() <= shared
            assert kept.keys() <= known
