"""The reaper: a small process that outlives ours just long enough to clean up if we are killed."""

import contextlib
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("reaper_script.py")
END_TIMEOUT_REAL_S = 5.0


class Reaper:
    """Kills the process groups it was told of when our process ends without ``close``."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(SCRIPT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def add(self, group: int) -> None:
        """Watch over process group ``group``."""
        self._tell(f"+{group}")

    def discard(self, group: int) -> None:
        """The group is gone, its number may be another's soon."""
        self._tell(f"-{group}")

    def remove_with_us(self, directory: Path) -> None:
        """Remove ``directory`` if we are killed."""
        self._tell(f"rm {directory}")

    def close(self) -> None:
        """End the watch: whoever calls has cleaned up."""
        self._tell("quit")
        with contextlib.suppress(BrokenPipeError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT_REAL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _tell(self, line: str) -> None:
        # A reaper that was killed cannot help any more; our own clean-up still does.
        with contextlib.suppress(BrokenPipeError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
