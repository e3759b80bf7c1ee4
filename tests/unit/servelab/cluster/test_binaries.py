"""Where binaries are looked for, and what happens when none can be had."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from modelserve import errors
from servelab.cluster import binaries, releases, reporting, store


def program(path: Path, component: releases.Component, version: str | None = None) -> None:
    """A program that reports a version as ``component`` does."""
    number = (version or component.version).removeprefix("v")
    word = "etcd Version: " if component is releases.Component.ETCD else "Kubernetes v"
    path.write_text(f"#!/bin/sh\necho '{word}{number}'\n")
    path.chmod(0o755)


class Source:
    """A way to get binaries that writes down what it was asked for."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.asked: list[Sequence[releases.Component]] = []

    def __call__(
        self,
        components: Sequence[releases.Component],
        into: store.Store,
        reporter: reporting.Reporter,
    ) -> None:
        self.asked.append(components)
        if self.failure:
            raise errors.SetUpError(self.failure)
        for component in components:
            program(into.partial(component), component)
            assert into.commit(component)


@pytest.fixture(autouse=True)
def _no_binaries_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


def fill(cache: Path, *ways: Source, **given: Path) -> binaries.Binaries:
    paths = {releases.Component(name.replace("_", "-")): path for name, path in given.items()}
    return binaries.fill(paths, store.Store(cache), reporting.Silent(), ways)


def test_everything_is_fetched_into_an_empty_cache(tmp_path: Path) -> None:
    found = fill(tmp_path, Source())
    assert found[releases.Component.ETCD] == tmp_path / "etcd"


def test_a_full_cache_asks_nobody(tmp_path: Path) -> None:
    fill(tmp_path, Source())
    source = Source()
    fill(tmp_path, source)
    assert source.asked == []


def test_only_what_is_missing_is_fetched(tmp_path: Path) -> None:
    fill(tmp_path, Source())
    (tmp_path / "kube-scheduler").unlink()
    source = Source()
    fill(tmp_path, source)
    assert source.asked == [[releases.Component.SCHEDULER]]


def test_given_paths_are_not_fetched(tmp_path: Path) -> None:
    source = Source()
    found = fill(tmp_path / "cache", source, etcd=tmp_path / "etcd")
    assert releases.Component.ETCD not in source.asked[0]
    assert found[releases.Component.ETCD] == tmp_path / "etcd"


def test_the_next_way_is_tried_when_one_fails(tmp_path: Path) -> None:
    second = Source()
    fill(tmp_path, Source("no network"), second)
    assert second.asked == [list(releases.ALL)]


def test_every_reason_is_named_when_all_ways_fail(tmp_path: Path) -> None:
    with pytest.raises(errors.SetUpError, match=r"no network; no Go"):
        fill(tmp_path, Source("no network"), Source("no Go"))


def test_path_is_searched_for_the_right_version_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "etcd", releases.Component.ETCD)
    program(tmp_path / "kube-scheduler", releases.Component.SCHEDULER, "v1.20.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found = fill(tmp_path / "cache", Source())
    assert found[releases.Component.ETCD] == tmp_path / "etcd"
    assert found[releases.Component.SCHEDULER] == tmp_path / "cache" / "kube-scheduler"


def test_an_explicit_directory_must_hold_all_four(tmp_path: Path) -> None:
    program(tmp_path / "etcd", releases.Component.ETCD)
    with pytest.raises(errors.SetUpError, match="has no kube-apiserver"):
        binaries.in_directory(tmp_path)


@pytest.mark.parametrize(
    ("component", "output", "version"),
    [
        (releases.Component.ETCD, "etcd Version: 3.7.3\nGit SHA: x\n", "v3.7.3"),
        (releases.Component.APISERVER, "Kubernetes v1.37.2\n", "v1.37.2"),
        (releases.Component.APISERVER, "Segmentation fault", None),
    ],
    ids=["etcd", "kubernetes", "broken"],
)
def test_versions_are_read_from_what_binaries_print(
    component: releases.Component, output: str, version: str | None
) -> None:
    assert releases.parse_version(component, output) == version
