"""Recorded pods on an emulated node of a real control plane: equal to what a real kubelet did."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[1]
RECORDING = ROOT / "unit/servelab/node/checks/recordings/kubelet-1.37.2.json"
SHORT = ("job-completes", "delete-graceful", "readiness-gate")


def test_short_recorded_pods_are_equal(tmp_path: Path) -> None:
    only = [word for name in SHORT for word in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "servelab", "kubelet-check", RECORDING, "--json", *only],
        env={"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "SERVELAB_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert report["differences"] == []
    assert (report["scenarios"], report["equal"], done.returncode) == (3, 3, 0)
