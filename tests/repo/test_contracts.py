"""The import contracts hold, and catch what they are there to catch."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINT = Path(sys.executable).with_name("lint-imports")


def test_imports_point_the_right_way() -> None:
    done = subprocess.run(
        [LINT, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_continuous_integration_script_is_executable_and_reads_no_input() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    assert "exec </dev/null" in script.read_text()
