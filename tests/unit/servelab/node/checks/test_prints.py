"""What kubectl prints reads the same wherever and whenever it was asked."""

from servelab.node.checks import prints, recording

REAL = """NAME   READY   STATUS    RESTARTS      AGE   IP            NODE     NOMINATED NODE
pod    1/1     Running   1 (3s ago)    5s    10.245.0.56   real-1   <none>
"""
OURS = """NAME   READY   STATUS    RESTARTS       AGE     IP             NODE       NOMINATED NODE
pod    1/1     Running   1 (12s ago)    1m15s   10.200.0.156   check-0    <none>
"""
DESCRIBED = """Name:         pod
Namespace:    default
Service Account:  default
Annotations:  a: b
              c: d
Status:       Running
"""


def lines(text: str, namespace: str = "default", node: str = "real-1") -> list[str]:
    return prints.lines(recording.Answer(code=0, stdout=text), namespace, node)


def test_ages_addresses_and_widths_do_not_count() -> None:
    assert lines(REAL) == lines(OURS, "check", "check-0")


def test_another_state_counts() -> None:
    assert lines(REAL) != lines(OURS.replace("Running", "Error"), "check", "check-0")


def test_the_exit_code_counts() -> None:
    assert prints.lines(recording.Answer(code=1), "default", "real-1") == ["exit 1"]


def test_an_emulated_pods_own_annotations_do_not_count() -> None:
    told = ["exit 0", "Name: pod", "Namespace: <namespace>", "Service Account: default"]
    assert lines(DESCRIBED) == [*told, "Status: Running"]


def test_only_commands_about_the_pod_are_asked_again() -> None:
    asked = [{"t": 1, "command": "get pod {pod}"}, {"t": 2, "command": "describe node {node}"}]
    body = {"scenario": "a", "pod": {}, "updates": [], "prints": asked}
    found = prints.compared(recording.Scenario.model_validate(body))
    assert [each.command for each in found] == ["get pod {pod}"]
