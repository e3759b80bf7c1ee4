"""What is built, and the estimate of how long it takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.cluster import gobuild, releases, toolchain


def test_kubernetes_is_told_its_version() -> None:
    flags = gobuild.target(releases.Component.APISERVER).ldflags
    assert "gitVersion=v1.37.2" in flags
    assert "gitMinor=37" in flags


@pytest.mark.parametrize("component", releases.ALL)
def test_every_component_has_a_module_that_pins_it(component: releases.Component) -> None:
    one = gobuild.target(component)
    module = one.package.removesuffix(f"/cmd/{component.value}")
    pinned = f"{module} {component.version}"
    assert pinned in (one.module / "go.mod").read_text()
    assert (one.module / "go.sum").exists()


@given(total=st.floats(1, 5000), share=st.floats(0, 1), now_real_s=st.floats(1, 5000))
def test_the_estimate_is_never_negative(total: float, share: float, now_real_s: float) -> None:
    meter = gobuild.Meter(total, cores=2, begun_real_s=0, done_packages=total * share)
    assert meter.remaining_s(now_real_s) >= 0


def test_the_estimate_follows_the_measured_rate() -> None:
    meter = gobuild.Meter(total_packages=1000, cores=2, begun_real_s=0, done_packages=250)
    assert meter.remaining_s(now_real_s=100) == 300


def test_a_full_build_is_estimated_at_12_to_15_minutes_on_2_cores() -> None:
    assert 9 <= gobuild.estimate_s(2900, cores=2) / 60 <= 15


def test_go_build_ignores_the_users_own_go_settings() -> None:
    tools = toolchain.Toolchain(gobuild.SOURCES)
    environment = tools.environment({"GOFLAGS": "-mod=vendor", "GOOS": "plan9", "HOME": "/h"})
    assert environment["GOFLAGS"] == "-buildvcs=false"
    assert "GOOS" not in environment
    assert environment["HOME"] == "/h"


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.27rc1 linux/amd64", (1, 27)),
        ("command not found", None),
    ],
)
def test_go_versions_are_read(output: str, version: tuple[int, int] | None) -> None:
    assert toolchain.parse_version(output) == version
