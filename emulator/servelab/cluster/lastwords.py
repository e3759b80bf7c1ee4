"""Why a cluster that ran behind ended by itself, for whoever asks after it.

Kept among its logs, or beside its directory if that goes with it, until the next start or `down`.
"""

import contextlib
from pathlib import Path


def write(directory: Path, sentence: str, *, keep: bool) -> None:
    """Leave them; on a full disk there are none."""
    with contextlib.suppress(OSError):
        (_kept(directory) if keep else _beside(directory)).write_text(sentence)


def read(directory: Path) -> str:
    """What was left; empty if nothing was."""
    for path in (_kept(directory), _beside(directory)):
        with contextlib.suppress(OSError):
            return path.read_text(errors="replace")
    return ""


def forget(directory: Path) -> None:
    """Remove them."""
    for path in (_kept(directory), _beside(directory)):
        with contextlib.suppress(OSError):
            path.unlink()


def _kept(directory: Path) -> Path:
    return directory / "logs" / "ended.txt"


def _beside(directory: Path) -> Path:
    return directory.with_name(f"{directory.name}.ended")
