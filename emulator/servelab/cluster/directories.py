"""Where the local cluster keeps its files: a cache of binaries, the state of running clusters."""

import os
from pathlib import Path

CACHE_VARIABLE = "XDG_CACHE_HOME"
STATE_VARIABLE = "XDG_STATE_HOME"


def cache() -> Path:
    """The cache of everything that can be had again: ``$XDG_CACHE_HOME/modelserve``."""
    return _base(CACHE_VARIABLE, ".cache") / "modelserve"


def kubernetes_cache(version: str) -> Path:
    """The binaries of one Kubernetes version and the etcd that goes with it."""
    return cache() / "kubernetes" / version


def state(name: str) -> Path:
    """The directory of the running cluster called ``name``: ``$XDG_STATE_HOME/modelserve/NAME``."""
    return _base(STATE_VARIABLE, ".local/state") / "modelserve" / name


def private(path: Path) -> Path:
    """Make ``path`` (and its parents), readable by its owner only."""
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.chmod(0o700)
    return path


def _base(variable: str, under_home: str) -> Path:
    configured = os.environ.get(variable, "")
    return Path(configured) if configured.startswith("/") else Path.home() / under_home
