"""The containers of one pod as its container runtime knows them: running until they end."""

import hashlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from servelab.engine import stamps
from servelab.node.kubelet.behavior import Behavior
from servelab.node.rules import actions, records

# Set-up of a sandbox and its network, or its end, in emulated seconds (a real kubelet took 0.2 s).
SANDBOX_S = 0.2
NEVER = float("inf")
KILLED = 137
TERMINATED = 143
START_FAILED = 128
# What a runtime needs to report that a container has ended.
REAP_S = 0.05
# A termination message from logs: at most so many lines and bytes.
MESSAGE_LINES = 80
LOG_MESSAGE_BYTES = 2048
MESSAGE_BYTES = 4096
# Runs that a kubelet keeps of a container: the newest, and the one before for its last state and
# log (ContainerGCPolicy.MaxPerPodContainer 1).
KEPT = 2


class Process(Protocol):
    """What runs in a container whose behaviour no words lay out, because it really acts."""

    def listens(self) -> bool: ...

    def healthy(self) -> bool: ...

    def unready(self, path: str) -> int: ...


@dataclass(slots=True)
class Instance:
    """One run of a container. Times are Unix seconds, real; it ends when ``ends_s`` is over.

    A ``process`` that acts by itself hears of SIGTERM at ``term_s``.
    """

    name: str
    restart: int
    container_id: str
    started_s: float
    behavior: Behavior
    scale: float
    fallback: bool  # its log's end is its termination message
    ends_s: float = NEVER
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    process: Process | None = None
    term_s: float = NEVER
    resources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # that it runs with
    image: str = ""  # as its spec had it
    tail: deque[actions.Log] = field(default_factory=lambda: deque(maxlen=MESSAGE_LINES))
    hook_s: float = float("-inf")  # until when its preStop hook takes, inside it
    kept_s: float = float("-inf")  # until when it takes outside: its kill is not over before
    removed: bool = False  # from the runtime, which knows nothing of it any more

    def exited(self, now_s: float) -> bool:
        return now_s >= self.ends_s

    def age_s(self, now_s: float) -> float:
        """Emulated seconds since its start."""
        return (now_s - self.started_s) * self.scale

    def listens(self, now_s: float) -> bool:
        """Whether something listens on its ports."""
        acts = self.process is None or self.process.listens()
        return acts and self.behavior.listens(self.age_s(now_s))

    def healthy(self, now_s: float) -> bool:
        """Whether a server that answers says that all is well."""
        acts = self.process is None or self.process.healthy()
        return acts and self.behavior.healthy(self.age_s(now_s))

    def steady(self, now_s: float) -> bool:
        """Whether, from now on, it answers that all is well until it ends or acts."""
        acts = self.process is None or self.process.healthy()
        return acts and self.behavior.steady(self.age_s(now_s))

    def end(self, at_s: float, exit_code: int, reason: str = "") -> None:
        """It ends then, unless it has ended before."""
        if at_s < self.ends_s:
            self.ends_s, self.exit_code = at_s, exit_code
            self.reason = reason or ("Error" if exit_code else "Completed")

    def say(self, at_s: float, line: str) -> actions.Log:
        """Its process writes a line."""
        self.tail.append(actions.Log(self.name, at_s, line))
        return self.tail[-1]

    def stop(self, at_s: float, grace_real_s: float) -> None:
        """SIGTERM then, and SIGKILL after the grace."""
        said, kill_at_s = self.behavior, at_s + grace_real_s
        if self.process is not None:
            self.term_s = min(at_s, self.term_s)
            self.end(kill_at_s + REAP_S, KILLED)
        elif said.ignores_term:
            self.end(kill_at_s + REAP_S, KILLED)
        elif said.term_after_seconds is not None:
            gone_s = at_s + said.term_after_seconds / self.scale
            if gone_s <= kill_at_s:
                self.end(gone_s + REAP_S, said.term_exit_code)
            else:
                self.end(kill_at_s + REAP_S, KILLED)
        else:
            self.end(at_s + REAP_S, TERMINATED)

    def ended(self) -> records.Ended:
        """``state.terminated``."""
        return records.Ended(
            self.exit_code,
            self.reason,
            self.started_s,
            self.ends_s,
            self.container_id,
            self.message or self._message(),
        )

    def _message(self) -> str:
        """Its last words, once it has ended: what its process said last is said by then."""
        said, age_s = self.behavior, self.age_s(self.ends_s)
        # What it leaves as it ends by itself is not there before.
        words = said.termination_message if age_s >= (said.exit_after_seconds or 0.0) else ""
        if words or not (self.fallback and self.exit_code):
            return last(words, MESSAGE_BYTES)
        lines = [f"{text}\n" for when, text in said.lines() if when <= age_s]
        lines += [f"{stamps.stamped(each.line, each.at_real_s)}\n" for each in self.tail]
        return last("".join(lines[-MESSAGE_LINES:]), LOG_MESSAGE_BYTES)


@dataclass(frozen=True, slots=True)
class Seen:
    """One run as it was when the runtime was asked."""

    instance: Instance
    running: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The pod as the runtime told it: sandbox, and runs by container, the newest first."""

    sandbox: str = "absent"
    runs: Mapping[str, tuple[Seen, ...]] = field(default_factory=dict)

    def newest(self, name: str) -> Seen | None:
        found = self.runs.get(name, ())
        return found[0] if found else None

    def newest_exited(self, name: str) -> Instance | None:
        found = (seen.instance for seen in self.runs.get(name, ()) if not seen.running)
        return next(found, None)

    def started(self, names: tuple[str, ...]) -> bool:
        """Whether any of these containers has ever run in this sandbox."""
        return any(self.runs.get(name) for name in names)


@dataclass(slots=True)
class Runtime:
    """Sandbox and containers as they are."""

    pod_uid: str
    scale: float
    sandbox: str = "absent"
    instances: dict[str, list[Instance]] = field(default_factory=dict)
    fresh: list[Instance] = field(default_factory=list)  # started since their logs were laid out

    def look(self, now_s: float) -> Snapshot:
        """What the runtime would tell now."""
        runs = {}
        for name, found in self.instances.items():
            known = [each for each in found if not each.removed]
            if known:
                runs[name] = tuple(Seen(each, not each.exited(now_s)) for each in known)
        return Snapshot(self.sandbox, runs)

    def next_number(self, name: str) -> int:
        """Of its next run: a kubelet counts those that have left a log."""
        found = self.instances.get(name)
        return found[0].restart + 1 if found else 0

    def remove(self, name: str) -> None:
        """Forget all runs of a container."""
        for each in self.instances.get(name, ()):
            each.removed = True

    def running(self, now_s: float) -> list[Instance]:
        return [found[0] for found in self.instances.values() if not found[0].exited(now_s)]

    def create(
        self,
        name: str,
        restart: int,
        now_s: float,
        behavior: Behavior,
        *,
        fallback: bool,
        process: Process | None = None,
    ) -> Instance:
        """A container that starts now, and ends as its behaviour says."""
        seed = f"{self.pod_uid}/{name}/{restart}"
        identity = f"containerd://{hashlib.sha256(seed.encode()).hexdigest()}"
        made = Instance(name, restart, identity, now_s, behavior, self.scale, fallback)
        made.process = process
        self.instances[name] = [made, *self.instances.get(name, ())[: KEPT - 1]]
        self.fresh.append(made)
        plan(made)
        return made


def first(text: str, most_bytes: int) -> str:
    """Its first bytes; what is left of a character that was cut becomes U+FFFD."""
    return text.encode()[:most_bytes].decode(errors="replace")


def last(text: str, most_bytes: int) -> str:
    """Its last bytes, the same way."""
    return text.encode()[-most_bytes:].decode(errors="replace")


def plan(instance: Instance) -> None:
    """Lay out how it ends by itself."""
    said, since_s = instance.behavior, instance.started_s + REAP_S
    if said.oom_after_seconds is not None:
        instance.end(since_s + said.oom_after_seconds / instance.scale, KILLED, "OOMKilled")
    if said.exit_after_seconds is not None:
        instance.end(since_s + said.exit_after_seconds / instance.scale, said.exit_code)
