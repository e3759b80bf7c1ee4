"""``servelab demo`` as a user runs it: a cluster of its own, figures at the end, nothing left."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

DEMO = (sys.executable, "-P", "-m", "servelab", "demo", "--time-scale", "60", "--minutes", "0.5")


def environment(tmp_path: Path) -> dict[str, str]:
    """Its temporary files go where the test can see what is left of them."""
    return {**os.environ, "TMPDIR": str(tmp_path)}


def test_the_story_comes_to_its_end_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*DEMO, "--json"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["ok"], told["errors"], told["scaled_to_zero"]) == (True, 0, True)
    assert told["requests"] > 50
    assert told["cold_start"]["measured"]["totalSeconds"] > 0
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_stops_everything(tmp_path: Path) -> None:
    running = subprocess.Popen(
        DEMO, env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert running.stdout is not None
    with running:
        for line in running.stdout:
            if "wakes the model" in line:
                running.send_signal(signal.SIGINT)
    assert running.returncode == 130
    assert list(tmp_path.iterdir()) == []
