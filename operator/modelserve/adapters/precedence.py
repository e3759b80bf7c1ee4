"""Which processes of ours go first where the processor is short, as far as the system lets us."""

import contextlib
import os
from pathlib import Path

# As much as counts, and little enough that nobody starves: three times the share of the others.
NICENESS = -5
# Linux with autogroups shares the processor among sessions, whatever their processes say.
_AUTOGROUP = Path("/proc/self/autogroup")


def take() -> bool:
    """Go before processes that are never late; returns whether that was granted.

    For one that has to be in time and does little. Only the superuser may, or who has CAP_SYS_NICE.
    """
    try:
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    except OSError:
        return False
    with contextlib.suppress(OSError):
        _AUTOGROUP.write_text(str(NICENESS))
    return True


def give_back() -> None:
    """Be one among all again: a child has what its parent took. Call it in a session of its own."""
    if os.getpriority(os.PRIO_PROCESS, 0) < 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0)
