"""Locks on files, which the system lets go of when their holder dies."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


class FileLock:
    """An exclusive lock on ``path``; the file goes away with the lock if ``remove`` is set."""

    def __init__(self, path: Path, *, remove: bool = False) -> None:
        self.path = path
        self._remove = remove
        self._descriptor: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether we have it."""
        return self._descriptor is not None

    def acquire(self, *, wait: bool = False) -> bool:
        """Take the lock; False if somebody else has it and ``wait`` is not set."""
        while True:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                os.close(descriptor)
                return False
            except BaseException:
                os.close(descriptor)
                raise
            if self._is_current(descriptor):
                self._descriptor = descriptor
                return True
            os.close(descriptor)

    def release(self) -> None:
        """Let the lock go; nothing happens if it is not held."""
        if self._descriptor is None:
            return
        if self._remove:
            self.path.unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None

    def _is_current(self, descriptor: int) -> bool:
        # The former holder may have removed the file between our open and our lock.
        try:
            return os.path.samestat(os.fstat(descriptor), self.path.stat())
        except FileNotFoundError:
            return False


@contextlib.contextmanager
def held(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock on ``path``, calling ``on_wait`` once if somebody else has it first."""
    lock = FileLock(path)
    if not lock.acquire():
        on_wait()
        lock.acquire(wait=True)
    try:
        yield
    finally:
        lock.release()
