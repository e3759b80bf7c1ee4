"""Kills what a killed parent left: runs as its own process, told by lines on standard input.

``+PGID`` and ``-PGID`` add and take away a process group, ``rm PATH`` names a directory that goes
with the parent, ``quit`` ends the watch. When the input ends without ``quit`` the parent was
killed: its groups are killed and its directories removed. Standard library only, started by path.
"""

import contextlib
import os
import shutil
import signal
import sys
import time


def watch() -> None:
    """Read lines until ``quit`` or the end."""
    # Signals meant for the parent (Ctrl-C, a closed terminal) are the parent's to handle.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups: set[int] = set()
    directories: list[str] = []
    for line in sys.stdin:
        word = line.strip()
        if word == "quit":
            return
        if word.startswith("+"):
            groups.add(int(word[1:]))
        elif word.startswith("-"):
            groups.discard(int(word[1:]))
        elif word.startswith("rm "):
            directories.append(word[3:])
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    for directory in directories:
        _remove(directory)


def _remove(directory: str) -> None:
    # A dying process may still write: try again for a moment.
    for _ in range(20):
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.exists(directory):
            return
        time.sleep(0.1)


if __name__ == "__main__":
    watch()
