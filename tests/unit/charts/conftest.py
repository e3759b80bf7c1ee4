"""The chart as Helm renders it."""

import functools
import json
import pathlib
from collections.abc import Callable
from typing import Any

import helm_python
import pytest
import yaml

CHART = pathlib.Path(__file__).parents[3] / "charts" / "modelserve"
Manifest = dict[str, Any]


def _files(values: Manifest) -> dict[str, str]:
    with helm_python.Chart.load(str(CHART)) as chart:
        found: dict[str, str] = chart.render(
            values, name="modelserve", namespace="modelserve-system"
        )
    return found


@functools.cache
def _manifests(values: str) -> tuple[Manifest, ...]:
    """By values as JSON."""
    found = _files(json.loads(values))
    texts = [text for path, text in found.items() if path.endswith(".yaml")]
    return tuple(m for text in texts for m in yaml.load_all(text, yaml.CSafeLoader) if m)


@pytest.fixture(scope="session")
def chart() -> pathlib.Path:
    """Its folder."""
    return CHART


@pytest.fixture(scope="session")
def render() -> Callable[..., list[Manifest]]:
    """All manifests with these values; not to be changed."""
    return lambda **values: list(_manifests(json.dumps(values)))


@pytest.fixture(scope="session")
def notes() -> Callable[..., str]:
    """What Helm prints after an installation with these values."""
    return lambda **values: _files(values)["modelserve/templates/NOTES.txt"]


@pytest.fixture(scope="session")
def one(render: Callable[..., list[Manifest]]) -> Callable[..., Manifest]:
    """The one manifest of a kind and name."""

    def found(kind: str, name: str, **values: Any) -> Manifest:
        chosen = [m for m in render(**values) if (m["kind"], m["metadata"]["name"]) == (kind, name)]
        assert len(chosen) == 1, f"{len(chosen)} times {kind} {name}"
        return chosen[0]

    return found


@pytest.fixture(scope="session")
def pod(one: Callable[..., Manifest]) -> Callable[..., Manifest]:
    """The pod template of a component."""

    def template(component: str, **values: Any) -> Manifest:
        found: Manifest = one("Deployment", f"modelserve-{component}", **values)["spec"]["template"]
        return found

    return template
