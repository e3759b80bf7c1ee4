"""Child processes of the local cluster: each in a process group of its own, with a log file."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from modelserve import errors
from servelab.cluster import reaper

LOG_END_LINES = 12
POLL_REAL_S = 0.02


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """What to run, under which name. ``environment`` is the whole of it."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class Death:
    """A child that ended by itself."""

    name: str
    exit_code: int
    log: Path
    log_end: str

    def sentence(self) -> str:
        """What happened and the end of its log."""
        how = f"exit code {self.exit_code}"
        if self.exit_code < 0:
            how = f"signal {signal.Signals(-self.exit_code).name}"
        if not self.log_end:
            return f"{self.name} ended with {how} and wrote no log"
        return f"{self.name} ended with {how}; the end of its log:\n{self.log_end}"


class Child:
    """One running process."""

    def __init__(self, command: Command, log: Path, guard: reaper.Reaper) -> None:
        self.command = command
        self.log = log
        self._guard = guard
        with log.open("ab") as output:
            self._log_begin_bytes = output.tell()
            try:
                self._process = subprocess.Popen(
                    list(command.arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(command.environment),
                    start_new_session=True,
                    cwd=log.parent,
                )
            except OSError as failure:
                raise errors.SetUpError(
                    f"{command.name} cannot be started from {command.arguments[0]}: "
                    f"{failure.strerror}"
                ) from failure
        guard.add(self.pid)
        self._watched = True

    @property
    def pid(self) -> int:
        """Process id, and number of its process group."""
        return self._process.pid

    def death(self) -> Death | None:
        """How it ended, or None while it runs."""
        exit_code = self._process.poll()
        if exit_code is None:
            return None
        self._sweep()
        return Death(self.command.name, exit_code, self.log, self.log_end())

    def log_end(self, lines: int = LOG_END_LINES) -> str:
        """The last lines it wrote in this run."""
        with self.log.open("rb") as file:
            file.seek(self._log_begin_bytes)
            text = file.read().decode("utf-8", "replace")
        return "\n".join(f"  {line[:500]}" for line in text.splitlines()[-lines:])

    def wait_until(self, ready: Callable[[], bool], timeout_real_s: float) -> None:
        """Wait for ``ready``. SetUpError with the end of the log if it dies or is late."""
        deadline_real_s = time.monotonic() + timeout_real_s
        while not ready():
            death = self.death()
            if death is not None:
                raise errors.SetUpError(death.sentence())
            if time.monotonic() > deadline_real_s:
                raise errors.SetUpError(
                    f"{self.command.name} was not ready after {timeout_real_s:.0f} s; the end of "
                    f"its log:\n{self.log_end()}"
                )
            time.sleep(POLL_REAL_S)

    def is_ready(self) -> bool:
        """Whether it has printed its line ``{"ready": true, …}``."""
        return self.ready_line() is not None

    def ready_line(self) -> dict[str, Any] | None:
        """The JSON line ``{"ready": true, …}`` of this run, once it has been printed."""
        with self.log.open("rb") as file:
            file.seek(self._log_begin_bytes)
            for line in file:
                if line.startswith(b"{") and b'"ready"' in line and line.endswith(b"\n"):
                    with contextlib.suppress(ValueError):
                        document = json.loads(line)
                        if document.get("ready") is True:
                            return dict(document)
        return None

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def end(self, deadline_real_s: float) -> None:
        """Wait until ``deadline_real_s`` (monotonic), then kill the whole group."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(deadline_real_s - time.monotonic(), 0))
        self._sweep()
        self._process.wait()

    def _sweep(self) -> None:
        # Its own children, if it left any, share the group.
        if self._watched:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self._guard.discard(self.pid)
            self._watched = False


class Family:
    """All children of one cluster, by name."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._children: dict[str, Child] = {}
        self._commands: dict[str, Command] = {}
        self.guard = reaper.Reaper()

    def start(self, command: Command) -> Child:
        """Start a child; its output goes to ``logs/NAME.log``."""
        child = Child(command, self._logs / f"{command.name}.log", self.guard)
        self._children[command.name] = child
        self._commands[command.name] = command
        return child

    def start_again(self, name: str) -> Child:
        """Start what has ended as it was started before."""
        return self.start(self._commands[name])

    def names(self) -> Sequence[str]:
        """Everyone that runs."""
        return tuple(name for name, child in self._children.items() if child.death() is None)

    def child(self, name: str) -> Child:
        """The child called ``name``. InputError if there is none."""
        try:
            return self._children[name]
        except KeyError:
            known = ", ".join(self._children) or "none"
            raise errors.InputError(
                f"no process called {name!r} runs here; there are: {known}"
            ) from None

    def deaths(self) -> Sequence[Death]:
        """Those that ended by themselves since the last call; they are forgotten with it."""
        found = [death for child in self._children.values() if (death := child.death())]
        for death in found:
            del self._children[death.name]
        return found

    def stop(
        self, names: Sequence[str], grace_real_s: float, number: signal.Signals = signal.SIGTERM
    ) -> None:
        """Stop several at once: the signal, the grace (real s), then SIGKILL to what is left."""
        chosen = [self._children.pop(name) for name in names if name in self._children]
        for child in chosen:
            child.signal(number)
        deadline_real_s = time.monotonic() + grace_real_s
        for child in chosen:
            child.end(deadline_real_s)

    def close(self) -> None:
        """Kill whoever is left and end the watch."""
        self.stop(tuple(self._children), 0, signal.SIGKILL)
        self.guard.close()


def started_at(pid: int) -> str | None:
    """When a process was started, in the system's own words; None if there is no such process.

    Together with the process id it names a process for good: ids are used again.
    """
    if sys.platform == "linux":
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = status.rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    done = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or None


def kill_group(group: int) -> None:
    """SIGKILL to a process group, if it still is."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
