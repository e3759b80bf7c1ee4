"""Builds the control plane from the Go module proxy, binary by binary, with an estimate.

Go's own build cache keeps what an interrupted build has compiled, so the next one goes on there.
Progress is counted in packages: those that ``go list`` calls stale against those ``go build -v``
has named; a link counts as many packages as it takes the time of.
"""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from modelserve import errors
from servelab.cluster import processes, reaper, releases, reporting, store, toolchain

SOURCES = Path(__file__).parent / "build"
TITLE = "building Kubernetes"
LINK_PACKAGES = 25
FREE_BYTES = 8 << 30
FREE_BYTES_TO_LINK = 1 << 30
# Measured: 2,500 packages and 4 links in 450 to 670 s, most of it compiling.
MEASURED = "8 to 12 min on 2 cores"
CORE_S_PER_PACKAGE = 0.5
KUBERNETES_LDFLAGS = (
    "-s -w -X k8s.io/component-base/version.gitVersion={version}"
    " -X k8s.io/component-base/version.gitMajor={major}"
    " -X k8s.io/component-base/version.gitMinor={minor}"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """One main package and the module that pins it."""

    component: releases.Component
    module: Path
    package: str
    ldflags: str


@dataclasses.dataclass(slots=True)
class Meter:
    """Counts finished work, in packages, and estimates the rest from its own rate."""

    total_packages: float
    cores: int
    begun_real_s: float
    done_packages: float = 0.0

    def fraction(self) -> float:
        """Done, from 0 to 1."""
        return min(self.done_packages / self.total_packages, 1.0) if self.total_packages else 1.0

    def remaining_s(self, now_real_s: float) -> float:
        """Estimate of what is left: by the measured rate, once a twentieth is done."""
        left_packages = max(self.total_packages - self.done_packages, 0.0)
        if self.fraction() < 0.05:
            return estimate_s(left_packages, self.cores)
        return left_packages * (now_real_s - self.begun_real_s) / self.done_packages


def estimate_s(packages: float, cores: int) -> float:
    """How long compiling takes before anything was measured; real seconds."""
    return packages * CORE_S_PER_PACKAGE / max(cores, 1)


def target(component: releases.Component) -> Target:
    """How to build ``component``."""
    if component is releases.Component.ETCD:
        return Target(component, SOURCES / "etcd", "go.etcd.io/etcd/server/v3", "-s -w")
    major, minor, _ = component.version.removeprefix("v").split(".")
    flags = KUBERNETES_LDFLAGS.format(version=component.version, major=major, minor=minor)
    package = f"k8s.io/kubernetes/cmd/{component.value}"
    return Target(component, SOURCES / "kubernetes", package, flags)


def build(
    components: Sequence[releases.Component],
    into: store.Store,
    tools: toolchain.Toolchain,
    reporter: reporting.Reporter,
) -> None:
    """Build ``components`` into the store. SetUpError with the compiler's last words."""
    targets = [target(component) for component in components]
    places = [into.directory, *tools.caches()]
    _check_space(places, FREE_BYTES_TO_LINK)
    reporter.say("reading the sources from the Go module proxy")
    stale = {package for one in targets for package in _stale(one, tools, reporter)}
    cores = os.cpu_count() or 1
    total_packages = len(stale) + LINK_PACKAGES * len(targets)
    if stale:
        _check_space(places, FREE_BYTES)
    minutes = max(estimate_s(total_packages, cores) / 60, 1)
    reporter.say(
        f"building {', '.join(c.value for c in components)} from source: {len(stale)} packages to "
        f"compile, about {minutes:.0f} min on {cores} cores, once; if interrupted it goes on "
        "where it stopped"
    )
    meter = Meter(total_packages, cores, time.monotonic())
    for one in targets:
        _build_one(one, into, tools, meter, reporter)
    reporter.finish(TITLE)


def _check_space(places: Sequence[Path], needed_bytes: int) -> None:
    for place in places:
        standing = next(path for path in (place, *place.parents) if path.exists())
        free_bytes = shutil.disk_usage(standing).free
        if free_bytes < needed_bytes:
            raise errors.SetUpError(
                f"building needs {needed_bytes >> 30} GB free in {place} and there are "
                f"{free_bytes / (1 << 30):.1f}: make room, or set GOCACHE, GOMODCACHE and "
                "XDG_CACHE_HOME to a larger disk"
            )


def _stale(one: Target, tools: toolchain.Toolchain, reporter: reporting.Reporter) -> list[str]:
    template = "{{if .Stale}}{{.ImportPath}}{{end}}"
    command = [str(tools.go), "list", "-trimpath", "-deps", "-f", template, one.package]
    environment = tools.environment(os.environ)
    lines: list[str] = []
    with tempfile.TemporaryFile("w+") as output:
        with _running(command, one.module, environment, output) as process:
            assert process.stderr is not None
            fetched = 0
            for line in process.stderr:
                lines.append(line.strip())
                if line.startswith("go: downloading "):
                    fetched += 1
                    reporter.progress(f"fetching sources, {fetched} modules", 0.0, None)
        output.seek(0)
        names = output.read()
    if process.returncode != 0:
        raise errors.SetUpError(
            f"the sources of {one.component.value} cannot be had: {_last(lines)}; check the "
            "network and GOPROXY, or give the binaries with --kubernetes-bin DIR"
        )
    return names.split()


def _build_one(
    one: Target,
    into: store.Store,
    tools: toolchain.Toolchain,
    meter: Meter,
    reporter: reporting.Reporter,
) -> None:
    partial = into.partial(one.component)
    command = [str(tools.go), "build", "-v", "-trimpath", "-ldflags", one.ldflags]
    lines: list[str] = []
    try:
        command += ["-o", str(partial), one.package]
        environment = tools.environment(os.environ) | {"GOTMPDIR": str(into.scratch())}
        with _running(command, one.module, environment, subprocess.DEVNULL) as process:
            assert process.stderr is not None
            for line in process.stderr:
                lines.append(line.strip())
                meter.done_packages += 1
                reporter.progress(TITLE, meter.fraction(), meter.remaining_s(time.monotonic()))
        meter.done_packages += LINK_PACKAGES
        reporter.progress(TITLE, meter.fraction(), meter.remaining_s(time.monotonic()))
        if process.returncode != 0:
            raise errors.SetUpError(
                f"building {one.component.value} failed: {_last(lines)}; start again to go on "
                "where it stopped, or give the binaries with --kubernetes-bin DIR"
            )
        if not into.commit(one.component):
            raise errors.SetUpError(
                f"the {one.component.value} built here does not report {one.component.version}"
            )
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def _running(
    command: list[str], module: Path, environment: Mapping[str, str], output: IO[str] | int
) -> "Iterator[subprocess.Popen[str]]":
    """A Go command in a process group of its own, which ends with the block or with us."""
    guard = reaper.Reaper()
    process = subprocess.Popen(
        command,
        cwd=module,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    guard.add(process.pid)
    try:
        with process:
            try:
                yield process
            except BaseException:
                processes.kill_group(process.pid)
                raise
    finally:
        guard.close()


def _last(lines: Sequence[str]) -> str:
    telling = [line for line in lines if line and not line.startswith("go: downloading ")]
    return " / ".join(telling[-3:]) or "the compiler said nothing"
