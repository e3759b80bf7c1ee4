"""Image, kind cluster and chart say the same: versions, ports, programs, what is built."""

import pathlib
import re
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]


@pytest.mark.parametrize(
    ("file", "sign"),
    [
        ("Dockerfile", r"^ARG VERSION=(\S+)$"),
        ("Makefile", r"^TAG \?= (\S+)$"),
        ("charts/modelserve/Chart.yaml", r"^appVersion: (\S+)$"),
    ],
)
def test_the_version_is_that_of_the_package(file: str, sign: str) -> None:
    assert re.findall(sign, (ROOT / file).read_text(), re.M) == [VERSION]


def test_docker_sees_all_that_a_wheel_is_built_from() -> None:
    build = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", "hatch_build.py", PROJECT["project"]["readme"]}
    needed |= {*PROJECT["project"]["license-files"], *build["packages"], *build["force-include"]}
    first, *seen = [
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if not line.startswith("#")
    ]
    assert first == "*"
    assert [path for path in needed if not {path, path.partition("/")[0]} & set(seen)] == []


def test_the_image_has_the_programs_that_the_chart_starts(
    render: Callable[..., list[dict[str, Any]]],
) -> None:
    pods = [m["spec"]["template"]["spec"] for m in render() if m["kind"] == "Deployment"]
    started = {pod["containers"][0]["command"][0] for pod in pods}
    assert started <= PROJECT["project"]["scripts"].keys()


def test_the_user_of_the_image_is_the_charts(
    render: Callable[..., list[dict[str, Any]]],
) -> None:
    pods = [m["spec"]["template"]["spec"] for m in render() if m["kind"] == "Deployment"]
    (user,) = {pod["securityContext"]["runAsUser"] for pod in pods}
    assert f"\nUSER {user}:{user}\n" in (ROOT / "Dockerfile").read_text()


def test_kind_leads_to_the_gateway() -> None:
    cluster = yaml.safe_load((ROOT / "charts" / "kind.yaml").read_text())
    values = yaml.safe_load((ROOT / "charts/modelserve/ci/kind-values.yaml").read_text())
    (mapping,) = cluster["nodes"][0]["extraPortMappings"]
    assert mapping["containerPort"] == values["gateway"]["service"]["nodePort"]
    assert values["gateway"]["service"]["type"] == "NodePort"
    assert f"127.0.0.1:{mapping['hostPort']}" in (ROOT / "docs/how-to/run-on-kind.md").read_text()
