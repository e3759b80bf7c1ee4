"""Which process this is, in words by which a later one on the same machine can look it up."""

import functools
import hashlib
import os
import re
import secrets
import socket
from pathlib import Path

# What tells apart where process ids mean the same: a boot of a machine, and a namespace in it.
_BOOT, _NAMESPACE = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")

_SHAPE = re.compile("(?P<host>.*)_(?P<pid>[0-9]+)_(?P<where>[0-9a-f]+)")


def this_process() -> str:
    """Host name, process id, and where that id counts; a random word where nobody can tell."""
    return f"{socket.gethostname()}_{os.getpid()}_{_where() or _lot()}"


def has_ended(identity: str) -> bool:
    """Whether that process ran here and is gone; False for one that this machine cannot see."""
    found = _SHAPE.fullmatch(identity)
    if found is None or found["where"] != _where() or identity == this_process():
        return False
    # Who had our id before us is gone, too.
    pid = int(found["pid"])
    return pid == os.getpid() or not _runs(pid)


def _where() -> str:
    try:
        found = f"{_BOOT.read_text()}\n{_NAMESPACE.readlink()}"
    except OSError:
        return ""
    return hashlib.blake2b(found.encode(), digest_size=4).hexdigest()


@functools.cache
def _lot() -> str:
    """The same for this process, and no other's."""
    return secrets.token_hex(4)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # somebody else's
    return True
