"""An emulator on a control plane without operator and gateway: what a foreign user sees."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

SERVELAB = (sys.executable, "-P", "-m", "servelab")
KUBECTL = Path(sys.executable).with_name("kubectl")
SCALE = 20
POOL = {
    "apiVersion": "emulator.modelserve.dev/v1alpha1",
    "kind": "GPUPool",
    "metadata": {"name": "dgx"},
    "spec": {"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 2},
}


class Emulated:
    """A cluster of emulated nodes, and the commands about it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        run = directory / "run"
        self.environment = {**os.environ, "KUBECONFIG": str(run / "kubeconfig")}
        flags = ("--only-control-plane", "--detach", "--time-scale", str(SCALE))
        command = [*SERVELAB, "up", "--data-dir", str(directory), *flags]
        subprocess.run(command, check=True, capture_output=True, timeout=180)
        self.emulator = subprocess.Popen(
            [
                *(*SERVELAB, "emulator", f"--time-scale={SCALE}", "--workers=1"),
                f"--kubeconfig={run / 'emulator.kubeconfig'}",
                f"--kubelet-client-ca={run / 'pki' / 'ca.crt'}",
                f"--kubelet-cert={run / 'pki' / 'kubelet.crt'}",
                f"--kubelet-key={run / 'pki' / 'kubelet.key'}",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.emulator.stdout is not None
        assert json.loads(self.emulator.stdout.readline())["ready"]

    def kubectl(self, *arguments: str, body: object = None) -> str:
        """What kubectl prints; a failure is one of the test."""
        return self._run((str(KUBECTL), *arguments), body)

    def servelab(self, *arguments: str) -> str:
        """What servelab prints."""
        return self._run((*SERVELAB, *arguments), None)

    def apply(self, *bodies: object) -> None:
        """Apply these objects."""
        self.kubectl("apply", "-f", "-", body={"apiVersion": "v1", "kind": "List", "items": bodies})

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def pods(self, app: str) -> list[Any]:
        """The pods of that label."""
        found: list[Any] = self.get("pods", "-l", f"app={app}")["items"]
        return found

    def until(self, met: Callable[[], bool], what: str, limit_s: float = 40.0) -> None:
        """Wait; the test fails if it never comes."""
        give_up = time.monotonic() + limit_s
        while not met():
            assert time.monotonic() < give_up, f"waited in vain for {what}"
            time.sleep(0.2)

    def close(self) -> None:
        self.emulator.terminate()
        self.emulator.communicate(timeout=15)
        subprocess.run(
            [*SERVELAB, "down", "--data-dir", str(self.directory)],
            check=False,
            capture_output=True,
        )

    def _run(self, command: tuple[str, ...], body: object) -> str:
        done = subprocess.run(
            command,
            input=None if body is None else json.dumps(body),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulated]:
    """One for all modules that ask for it, with a pool of two nodes of eight GPUs."""
    found = Emulated(tmp_path_factory.mktemp("emulated") / "cluster")
    try:
        found.apply(POOL)
        found.kubectl("wait", "--for=condition=Ready", "gpupool/dgx", "--timeout=30s")
        yield found
    finally:
        found.close()
