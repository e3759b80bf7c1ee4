"""What a pod by chance asks of a kubelet for its containers: probes, hooks, policies, resources."""

import random
from collections.abc import Sequence
from typing import Any

from servelab.node.checks import recording
from servelab.recording import programs

Raw = dict[str, Any]

# A hook does not end with a grace, of whole seconds.
_HOOKS_S = ("0.6", "1.4", "2.5", "3.4")


def probes(rng: random.Random, name: str, program: programs.Program) -> Raw:
    """Probes that its program can answer, mostly, and the port that they name, if any."""
    kinds: Sequence[str] = recording.PROBES
    if not (program.listens or program.has_file):
        # Nothing answers: all that probes find is that.
        if rng.random() >= 0.15:
            return {}
        kinds = rng.sample(kinds, 1)
    found: Raw = {kind: _probe(rng, program, kind, name) for kind in kinds if rng.random() < 0.5}
    if any(_named(probe) for probe in found.values()):
        found["ports"] = [{"name": "web", "containerPort": programs.PORTS[name]}]
    return found


def _named(probe: Raw) -> bool:
    return any("web" in str(target) for target in probe.values())


def _probe(rng: random.Random, program: programs.Program, kind: str, name: str) -> Raw:
    found: Raw = {
        "periodSeconds": rng.choice((1, 1, 1, 2, 3)),
        "failureThreshold": rng.choice((1, 2, 3, 5) if kind != "startupProbe" else (2, 4, 6, 9)),
        "initialDelaySeconds": rng.choice((0, 0, 0, 1, 2, 4)),
        "timeoutSeconds": rng.choice((1, 2)),
    }
    if kind == "readinessProbe":
        found["successThreshold"] = rng.choice((1, 1, 2, 3))
    elif rng.random() < 0.25:
        found["terminationGracePeriodSeconds"] = rng.choice((1, 3))
    return found | _target(rng, program, programs.PORTS[name])


def _target(rng: random.Random, program: programs.Program, port: int) -> Raw:
    if program.has_file:
        return _execs("/bin/test", "-f", "/tmp/ok")
    if rng.random() < 0.15:
        # Of these a kubelet's exec says all there is.
        return _execs(*rng.choice((("/bin/true",), ("/bin/false",), ("/bin/sleep", "5"))))
    where: int | str = "web" if rng.random() < 0.2 else port
    if rng.random() < 0.3:
        return {"tcpSocket": {"port": where}}
    if not program.listens and rng.random() < 0.3:
        return {"grpc": {"port": port}}
    return {"httpGet": {"path": "/health", "port": where}}


def hooks(rng: random.Random, name: str, grace_s: int) -> Raw:
    """What runs after its start and before its stop, in a pod of that grace."""
    found = {}
    if rng.random() < 0.15:
        found["postStart"] = _hook(rng, name, grace_s)
    if rng.random() < 0.3:
        found["preStop"] = _hook(rng, name, grace_s)
    return {"lifecycle": found} if found else {}


def _hook(rng: random.Random, name: str, grace_s: int) -> Raw:
    # A sleep may not be longer than the grace: the API server refuses that.
    draws: list[Raw] = [_execs("/bin/false"), _execs("/bin/sleep", rng.choice(_HOOKS_S))]
    if grace_s:
        draws.append({"sleep": {"seconds": rng.randint(1, min(3, grace_s))}})
    if rng.random() < 0.2:
        draws = [{"httpGet": {"path": "/health", "port": programs.PORTS[name]}}]
    return rng.choice(draws)


def _execs(*command: str) -> Raw:
    return {"exec": {"command": list(command)}}


def policy(rng: random.Random) -> Raw:
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
                "values": sorted(rng.sample(programs.CODES, rng.randint(1, 3))),
            },
        }
        for action in actions
    ]
    return found | ({"restartPolicyRules": rules} if rules else {})


def resources(rng: random.Random, program: programs.Program) -> Raw:
    """Requests, limits, and what a resize of them would ask for; a memory limit where it eats."""
    if program.eats:
        return {"resources": {"limits": {"memory": "16Mi"}}}
    if rng.random() >= 0.25:
        return {}
    requests = {"cpu": f"{rng.choice((100, 200))}m", "memory": f"{rng.choice((16, 32))}Mi"}
    shapes = (("requests",), ("requests", "limits"), ("limits",))
    found: Raw = {"resources": dict.fromkeys(rng.choice(shapes), requests)}
    if rng.random() < 0.3:
        policies = ("NotRequired", "RestartContainer")
        found["resizePolicy"] = [
            {"resourceName": "cpu", "restartPolicy": rng.choice(policies)},
            {"resourceName": "memory", "restartPolicy": "NotRequired"},
        ]
    return found
