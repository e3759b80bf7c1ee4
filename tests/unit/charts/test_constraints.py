"""The image is built from pinned versions, which are ones that the package says it runs with."""

import importlib.metadata
import pathlib
import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = pathlib.Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# Whatever interpreter the tests run on, the image's is this one.
IMAGE = {
    "python_version": "3.11",
    "python_full_version": "3.11.15",
    "sys_platform": "linux",
    "platform_system": "Linux",
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "os_name": "posix",
}
TOOLS = re.search(r"^BUILD_TOOLS := (.*)$", (ROOT / "Makefile").read_text(), re.M)


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def asked() -> list[Requirement]:
    """What pyproject.toml and the build hook ask for."""
    hook = re.search(r'return \["(.*)"\] if _asked', (ROOT / "hatch_build.py").read_text())
    assert hook is not None
    project = PROJECT["project"]
    texts = [*project["dependencies"], *project["optional-dependencies"]["emulator"]]
    texts += [*PROJECT["build-system"]["requires"], *hook[1].split('", "')]
    return [Requirement(text) for text in texts]


def needed(found: Requirement, seen: set[str]) -> Iterator[str]:
    """The packages that it leads to in the image, as the ones installed here say."""
    name = canonicalize_name(found.name)
    wanted = (name, *sorted(found.extras))
    if str(wanted) in seen:
        return
    seen.add(str(wanted))
    yield name
    try:
        further = importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:
        return  # a tool of the build alone
    for each in map(Requirement, further):
        extras = found.extras or {""}
        if each.marker is None or any(each.marker.evaluate({**IMAGE, "extra": e}) for e in extras):
            yield from needed(each, seen)


@pytest.mark.parametrize("found", asked(), ids=lambda found: found.name)
def test_what_is_pinned_is_what_the_package_asks_for(found: Requirement) -> None:
    assert found.specifier.contains(pinned()[canonicalize_name(found.name)])


@pytest.mark.parametrize("found", asked(), ids=lambda found: found.name)
def test_all_that_it_leads_to_is_pinned(found: Requirement) -> None:
    assert [name for name in needed(found, set()) if name not in pinned()] == []


def test_the_tools_of_the_build_are_resolved_along() -> None:
    assert TOOLS is not None
    build = {requirement.name for requirement in asked()[-3:]}
    assert set(TOOLS[1].split()) == build


def test_the_image_is_built_with_them() -> None:
    text = (ROOT / "Dockerfile").read_text()
    (said,) = re.findall(r"^ENV (PIP_CONSTRAINT=.*)$", text, re.M)
    assert said.count("=/source/constraints.txt") == 2
    assert text.index(said) < text.index("pip wheel")
    assert f"ARG PYTHON={IMAGE['python_full_version']}-" in text
