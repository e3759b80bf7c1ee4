"""Builds a wheel whose hot modules are compiled by mypyc, if ``MODELSERVE_COMPILE=1`` asks for it.

The Python sources stay the reference: a wheel has both, and without a compiler there is the plain
one. A checkout is never compiled in place, where what was compiled would hide what was edited.
"""

import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ASKED = "MODELSERVE_COMPILE"
ROOTS = ("operator/modelserve", "emulator/servelab")
# What runs for each request, step or event. A class that others derive from says so by mypyc_attr.
HOT = (
    "modelserve/decide/counters.py",
    "modelserve/decide/fences.py",
    "modelserve/decide/fleet.py",
    "modelserve/decide/holding.py",
    "modelserve/decide/recent.py",
    "modelserve/decide/waiting.py",
    "servelab/engine/core/*.py",
    "servelab/engine/driver.py",
    "servelab/engine/server.py",
    "servelab/engine/calls.py",
    "servelab/engine/httpd/answer.py",
    "servelab/engine/httpd/connection.py",
    "servelab/engine/httpd/gate.py",
    "servelab/engine/httpd/heads.py",
    "servelab/engine/httpd/limits.py",
    "servelab/engine/httpd/parsing.py",
    "servelab/engine/httpd/routing.py",
    "servelab/engine/httpd/server.py",
    "servelab/engine/metrics/gaps.py",
    "servelab/engine/metrics/http.py",
    "servelab/engine/metrics/series.py",
    "servelab/engine/metrics/vllm.py",
    "servelab/engine/replying.py",
    "servelab/engine/surfaces/vllm/chunks.py",
    "servelab/engine/surfaces/vllm/quick.py",
    "servelab/engine/surfaces/vllm/replies.py",
    "servelab/engine/surfaces/vllm/surface.py",
    "servelab/engine/surfaces/vllm/wholes.py",
    "servelab/engine/text/answers.py",
    "servelab/engine/text/encoding.py",
    "servelab/engine/text/lengths.py",
    "servelab/engine/text/template.py",
    "servelab/engine/text/transcript.py",
    "servelab/sim/agenda.py",
    "servelab/sim/gateways.py",
    "servelab/sim/observing.py",
    "servelab/sim/replicas.py",
    "servelab/sim/requests.py",
    "servelab/sim/running.py",
    "servelab/sim/scalers.py",
    "servelab/sim/service.py",
    "servelab/workload/arrivals.py",
    "servelab/workload/generators.py",
)


class CompileHook(BuildHookInterface):
    """Adds the compiled modules to a wheel."""

    PLUGIN_NAME = "custom"
    _kept: contextlib.ExitStack | None = None  # what the wheel is made from, until it is

    def dependencies(self) -> list[str]:
        return ["mypy>=2", "setuptools>=65"] if _asked() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or not _asked():
            return
        with contextlib.ExitStack() as kept:
            staging = kept.enter_context(_scratch(Path(self.root)).directory("modelserve-compile"))
            for root in ROOTS:
                source = Path(self.root, root)
                shutil.copytree(source, staging / source.name)
            order = [sys.executable, os.path.abspath(__file__)]
            subprocess.run(order, cwd=staging, check=True)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            for path in staging.rglob("*.so"):
                if "build" not in path.relative_to(staging).parts:
                    build_data["force_include"][str(path)] = str(path.relative_to(staging))
            self._kept = kept.pop_all()

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._kept is not None:
            self._kept.close()


def _scratch(root: Path) -> Any:
    """The package's module of temporary directories, from the source tree."""
    path = root / "emulator" / "servelab" / "cluster" / "scratch.py"
    spec = importlib.util.spec_from_file_location("scratch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_here() -> None:
    """Compile in the working directory, which holds both packages; in a process of its own."""
    import setuptools
    from mypyc.build import mypycify

    modules = mypycify(
        ["--follow-imports=silent", "--ignore-missing-imports", *_hot(Path())], opt_level="2"
    )
    setuptools.setup(
        name="modelserve-compiled", script_args=["build_ext", "--inplace"], ext_modules=modules
    )


def _hot(root: Path) -> Iterator[str]:
    for pattern in HOT:
        found = sorted(str(path) for path in root.glob(pattern) if path.name != "__init__.py")
        if not found:
            raise FileNotFoundError(f"{pattern}: no such module; mend HOT in {__file__}")
        yield from found


def _asked() -> bool:
    return os.environ.get(ASKED, "") not in ("", "0")


if __name__ == "__main__":
    compile_here()
