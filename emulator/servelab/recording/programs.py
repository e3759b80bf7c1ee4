"""What a container of a pod by chance runs: a shell command, and the words that say the same."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Words = dict[str, Any]

CODES = (0, 1, 2, 3, 42, 137)
# Containers of a pod share its ports.
PORTS = {"main": 8000, "second": 8001, "a": 8002, "b": 8003}
_WAIT = "while true; do sleep 0.2; done"
_SERVE = "mkdir -p /www; echo ok > /www/health; {run} -p {port} -h /www"


@dataclass(frozen=True, slots=True)
class Program:
    """Command, words, and what can be asked of it."""

    sh: str  # with {port}, if it listens, and {name}, if it marks
    words: Words
    listens: bool = False
    has_file: bool = False  # /tmp/ok, while it is well
    marks: bool = False  # that it has run, in a volume
    eats: bool = False  # memory, more than its limit

    @property
    def writes(self) -> bool:
        """To its root, which then must not be read-only."""
        return self.listens or self.has_file

    def command(self, name: str) -> str:
        """As the container of that name has it."""
        return self.sh.replace("{port}", str(PORTS[name])).replace("{name}", name)

    def without_init(self) -> Words:
        """The words where the command is no first process, so that SIGTERM ends it."""
        return _dying(self.words)


def main(rng: random.Random) -> Program:
    """Of a container that a pod is there for."""
    if rng.random() < 0.03:
        return _eats(rng)
    draws = (_waits, _waits, _deaf, _ends, _ends, _mends, _serves, _serves, _flaps)
    return _drawn(rng, draws)


def sidecar(rng: random.Random) -> Program:
    """Of an init container that lasts; one that ends starts over and over."""
    return _drawn(rng, (_waits, _deaf, _serves, _ends))


def init(rng: random.Random) -> Program:
    """Of an init container: mostly one that is done soon."""
    return _drawn(rng, (_done, _done, _done, _mends, _ends))


def _drawn(rng: random.Random, draws: tuple[Callable[[random.Random], Program], ...]) -> Program:
    return rng.choice(draws)(rng)


def _dying(words: Mapping[str, Any]) -> Words:
    kept = {key: value for key, value in words.items() if key != "ignoresTerm"}
    later = kept.get("later")
    return kept if later is None else kept | {"later": _dying(later)}


def _eats(rng: random.Random) -> Program:
    after_s = rng.randint(1, 3)
    words = {"listen": False, "oomAfterSeconds": after_s, "ignoresTerm": True}
    return Program(f"sleep {after_s}; exec tail /dev/zero", words, eats=True)


def _waits(rng: random.Random) -> Program:
    late_s, code = rng.choice((0, 0, 1, 3)), rng.choice((0, 0, 3))
    slept = f"sleep {late_s}; " if late_s else ""
    words = {"listen": False, "termAfterSeconds": late_s + 0.15, "termExitCode": code}
    return Program(f"trap '{slept}exit {code}' TERM; {_WAIT}", words)


def _deaf(rng: random.Random) -> Program:
    if rng.random() < 0.5:
        return Program("sleep 3600", {"listen": False, "ignoresTerm": True})
    ill_s = rng.randint(3, 6)
    words = {"listen": False, "ignoresTerm": True, "healthyUntilSeconds": ill_s}
    command = f"touch /tmp/ok; sleep {ill_s}; rm /tmp/ok; sleep 3600"
    return Program(command, words, has_file=True)


def _ends(rng: random.Random) -> Program:
    after_s, code = rng.choice((0, 1, 2, 3, 5, 7)), rng.choice(CODES)
    words: Words = {"listen": False, "exitAfterSeconds": after_s, "exitCode": code}
    said, left = "", ""
    if rng.random() < 0.4:
        said, words["log"] = "echo hello; ", ["0 hello"]
    if rng.random() < 0.3:
        left, words["terminationMessage"] = "echo why > /dev/termination-log; ", "why\n"
    return Program(f"{said}sleep {after_s}; {left}exit {code}", words)


def _done(rng: random.Random) -> Program:
    after_s = rng.choice((0, 1, 1, 2, 3))
    return Program(f"sleep {after_s}", {"exitAfterSeconds": after_s, "exitCode": 0})


def _mends(rng: random.Random) -> Program:
    """It fails once, and then ends well, or stays."""
    after_s, code, stays = rng.randint(1, 3), rng.choice((1, 3, 42)), rng.random() < 0.5
    then = f"trap 'exit 0' TERM; {_WAIT}" if stays else "sleep 1; exit 0"
    later = (
        {"listen": False, "termAfterSeconds": 0.15, "termExitCode": 0}
        if stays
        else {"listen": False, "exitAfterSeconds": 1, "exitCode": 0, "ignoresTerm": True}
    )
    words = {"listen": False, "exitAfterSeconds": after_s, "exitCode": code, "ignoresTerm": True}
    command = (
        f"if [ -f /m/{{name}} ]; then {then}; fi; touch /m/{{name}}; sleep {after_s}; exit {code}"
    )
    return Program(command, words | {"later": later}, marks=True)


def _serves(rng: random.Random) -> Program:
    after_s = rng.choice((0, 0, 1, 2, 4))
    waits = f"sleep {after_s}; " if after_s else ""
    command = waits + _SERVE.replace("{run}", "exec /bin/httpd -f")
    return Program(command, {"listenAfterSeconds": after_s, "ignoresTerm": True}, listens=True)


def _flaps(rng: random.Random) -> Program:
    ill_s, for_s = rng.randint(3, 6), rng.randint(2, 5)
    words = {
        "unhealthySeconds": [[ill_s, ill_s + for_s]],
        "statusWhileUnhealthy": 404,
        "ignoresTerm": True,
    }
    command = _SERVE.replace("{run}", "/bin/httpd") + (
        f"; sleep {ill_s}; rm /www/health; sleep {for_s}; echo ok > /www/health; sleep 3600"
    )
    return Program(command, words, listens=True)
