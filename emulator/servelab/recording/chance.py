"""Cases by chance: small pods in which anything may meet anything, the same ones for a seed.

Each container is a shell command and the words that say the same to an emulated node.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from servelab.node.checks import recording
from servelab.recording import cases

Raw = dict[str, Any]

# What happens at whole seconds of a container's life is not met by an act at the same time.
_OFF_S = (0.25, 0.5, 0.75)
# Nor does a hook end with a grace, of whole seconds.
_HOOKS_S = ("0.6", "1.4", "2.5", "3.4")
_CODES = (0, 1, 2, 3, 42, 137)
_WAIT = "while true; do sleep 0.2; done"
_SERVE = "mkdir -p /www; echo ok > /www/health; {run} -p {port} -h /www"
# Containers of a pod share its ports.
_PORTS = {"main": 8000, "second": 8001, "a": 8002, "b": 8003}


@dataclass(frozen=True, slots=True)
class Program:
    """What a container runs: command, words, and what can be asked of it."""

    sh: str  # with {port}, if it listens, and {name}, if it marks
    words: Raw
    listens: bool = False
    has_file: bool = False  # /tmp/ok, while it is well
    marks: bool = False  # that it has run, in a volume


def draw(count: int, seed: int) -> list[cases.Case]:
    """So many cases, by that seed."""
    return [_case(f"chance-{seed}-{number}", seed, number) for number in range(count)]


def _case(name: str, seed: int, number: int) -> cases.Case:
    rng = random.Random(f"{seed}/{number}")
    grace_s = rng.choice((1, 2, 3, 5, 8))
    inits = [_init(rng, letter, grace_s) for letter in "ab"[: rng.choice((0, 0, 0, 1, 1, 2))]]
    mains = [
        _main(rng, each, grace_s) for each in ("main", "second")[: rng.choice((1, 1, 1, 2, 2))]
    ]
    pod: Raw = {
        "restartPolicy": rng.choice(("Always", "Always", "OnFailure", "Never")),
        "terminationGracePeriodSeconds": grace_s,
        "containers": [raw for raw, _ in mains],
    }
    if inits:
        pod["initContainers"] = [raw for raw, _ in inits]
    if any(program.marks for _, program in (*inits, *mains)):
        pod["volumes"] = [{"name": "mark", "emptyDir": {}}]
    if _chance(rng, 0.12):
        pod["activeDeadlineSeconds"] = rng.randint(3, 9)
    seconds, acts = float(rng.randint(14, 24)), []
    if _chance(rng, 0.12):
        pod["readinessGates"] = [{"conditionType": "example.com/warm"}]
        acts.append(_gate(rng))
    if _chance(rng, 0.6):
        gone = _deletion(rng, seconds)
        acts = [*(act for act in acts if act.t < gone.t), gone]
    return cases.Case(
        name=name,
        seconds=seconds,
        pod=pod,
        behavior={raw["name"]: program.words for raw, program in (*inits, *mains)},
        acts=acts,
    )


def _gate(rng: random.Random) -> cases.Act:
    row = {"type": "example.com/warm", "status": rng.choice(("True", "False")), "reason": "Chance"}
    patch = {"status": {"conditions": [row]}}
    return cases.Act(t=_moment(rng, 2, 6), verb="patch", subresource="status", patch=patch)


def _deletion(rng: random.Random, seconds: float) -> cases.Act:
    grace_s = rng.choice((None, None, None, 0, 1, 2, 6))
    at_s = _moment(rng, 1, int(seconds) - 4) if _chance(rng, 0.8) else _moment(rng, 0, 1)
    return cases.Act(t=at_s, verb="delete", grace_seconds=grace_s)


def _main(rng: random.Random, name: str, grace_s: int) -> tuple[Raw, Program]:
    program = rng.choice((_waits, _waits, _deaf, _ends, _ends, _mends, _serves, _serves, _flaps))(
        rng
    )
    raw = _container(name, program)
    raw |= _probes(rng, name, program)
    raw |= _hooks(rng, grace_s)
    if _chance(rng, 0.3):
        raw |= _policy(rng)
    if _chance(rng, 0.25):
        raw["terminationMessagePolicy"] = "FallbackToLogsOnError"
    if _chance(rng, 0.2):
        raw["resources"] = _resources(rng)
    if _chance(rng, 0.05):
        raw["image"] = rng.choice(("127.0.0.1:5000/nothing:v1", "127.0.0.1:5000/slow-2:v1"))
    return raw, program


def _init(rng: random.Random, name: str, grace_s: int) -> tuple[Raw, Program]:
    if _chance(rng, 0.45):
        program = rng.choice((_waits, _deaf, _serves, _ends))(rng)
        raw = _container(name, program) | {"restartPolicy": "Always"}
        raw |= _probes(rng, name, program)
        raw |= _hooks(rng, grace_s)
        if _chance(rng, 0.2):
            raw |= _policy(rng) | {"restartPolicy": "Always"}
        return raw, program
    program = rng.choice((_done, _done, _done, _mends, _ends))(rng)
    raw = _container(name, program)
    if _chance(rng, 0.2):
        raw |= _policy(rng)
    return raw, program


def _container(name: str, program: Program) -> Raw:
    command = program.sh.replace("{port}", str(_PORTS[name])).replace("{name}", name)
    raw: Raw = {"name": name, "sh": command}
    return raw | ({"volumeMounts": [{"name": "mark", "mountPath": "/m"}]} if program.marks else {})


# What runs.


def _waits(rng: random.Random) -> Program:
    late_s, code = rng.choice((0, 0, 1, 3)), rng.choice((0, 0, 3))
    slept = f"sleep {late_s}; " if late_s else ""
    words = {"listen": False, "termAfterSeconds": late_s + 0.15, "termExitCode": code}
    return Program(f"trap '{slept}exit {code}' TERM; {_WAIT}", words)


def _deaf(rng: random.Random) -> Program:
    if _chance(rng, 0.5):
        return Program("sleep 3600", {"listen": False, "ignoresTerm": True})
    ill_s = rng.randint(3, 6)
    words = {"listen": False, "ignoresTerm": True, "healthyUntilSeconds": ill_s}
    command = f"touch /tmp/ok; sleep {ill_s}; rm /tmp/ok; sleep 3600"
    return Program(command, words, has_file=True)


def _ends(rng: random.Random) -> Program:
    after_s, code = rng.choice((0, 1, 2, 3, 5, 7)), rng.choice(_CODES)
    words: Raw = {"listen": False, "exitAfterSeconds": after_s, "exitCode": code}
    said, left = "", ""
    if _chance(rng, 0.4):
        said, words["log"] = "echo hello; ", ["0 hello"]
    if _chance(rng, 0.3):
        left, words["terminationMessage"] = "echo why > /dev/termination-log; ", "why\n"
    return Program(f"{said}sleep {after_s}; {left}exit {code}", words)


def _done(rng: random.Random) -> Program:
    after_s = rng.choice((0, 1, 1, 2, 3))
    return Program(f"sleep {after_s}", {"exitAfterSeconds": after_s, "exitCode": 0})


def _mends(rng: random.Random) -> Program:
    """It fails once, and then ends well, or stays."""
    after_s, code, stays = rng.randint(1, 3), rng.choice((1, 3, 42)), _chance(rng, 0.5)
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


# What is asked of it.


def _probes(rng: random.Random, name: str, program: Program) -> Raw:
    kinds: Sequence[str] = recording.PROBES
    if not (program.listens or program.has_file):
        # Nothing answers: all that probes find is that.
        if not _chance(rng, 0.12):
            return {}
        kinds = rng.sample(kinds, 1)
    return {kind: _probe(rng, program, kind, _PORTS[name]) for kind in kinds if _chance(rng, 0.5)}


def _probe(rng: random.Random, program: Program, kind: str, port: int) -> Raw:
    found: Raw = {
        "periodSeconds": rng.choice((1, 1, 1, 2, 3)),
        "failureThreshold": rng.choice((1, 2, 3, 5) if kind != "startupProbe" else (2, 4, 6, 9)),
        "initialDelaySeconds": rng.choice((0, 0, 0, 1, 2, 4)),
        "timeoutSeconds": rng.choice((1, 2)),
    }
    if kind == "readinessProbe":
        found["successThreshold"] = rng.choice((1, 1, 2, 3))
    elif _chance(rng, 0.25):
        found["terminationGracePeriodSeconds"] = rng.choice((1, 3))
    if program.has_file:
        return found | {"exec": {"command": ["/bin/test", "-f", "/tmp/ok"]}}
    if _chance(rng, 0.3):
        return found | {"tcpSocket": {"port": port}}
    return found | {"httpGet": {"path": "/health", "port": port}}


def _hooks(rng: random.Random, grace_s: int) -> Raw:
    found: Raw = {}
    if _chance(rng, 0.15):
        found["postStart"] = rng.choice(
            (
                _sleeps(rng, grace_s),
                _execs("/bin/false"),
                _execs("/bin/sleep", rng.choice(_HOOKS_S)),
            )
        )
    if _chance(rng, 0.3):
        found["preStop"] = rng.choice(
            (
                _sleeps(rng, grace_s),
                _execs("/bin/false"),
                _execs("/bin/sleep", rng.choice(_HOOKS_S)),
            )
        )
    return {"lifecycle": found} if found else {}


def _sleeps(rng: random.Random, grace_s: int) -> Raw:
    """No longer than the grace: the API server refuses that."""
    return {"sleep": {"seconds": rng.randint(1, min(3, grace_s))}}


def _execs(*command: str) -> Raw:
    return {"exec": {"command": list(command)}}


def _policy(rng: random.Random) -> Raw:
    """A restart policy of its own, most with rules."""
    found: Raw = {"restartPolicy": rng.choice(("Always", "OnFailure", "Never"))}
    actions = rng.choice(
        ((), ("Restart",), ("RestartAllContainers",), ("Restart", "RestartAllContainers"))
    )
    rules = [
        {
            "action": action,
            "exitCodes": {
                "operator": rng.choice(("In", "In", "NotIn")),
                "values": sorted(rng.sample(_CODES, rng.randint(1, 3))),
            },
        }
        for action in actions
    ]
    return found | ({"restartPolicyRules": rules} if rules else {})


def _resources(rng: random.Random) -> Raw:
    requests = {"cpu": f"{rng.choice((100, 200))}m", "memory": f"{rng.choice((16, 32))}Mi"}
    return rng.choice(
        ({"requests": requests}, {"requests": requests, "limits": requests}, {"limits": requests})
    )


def _moment(rng: random.Random, first_s: int, last_s: int) -> float:
    return rng.randint(first_s, max(first_s, last_s)) + rng.choice(_OFF_S)


def _chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share
