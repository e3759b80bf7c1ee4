"""Readiness gates: conditions that others write, and when a kubelet takes notice of them.

After kubelet 1.37's NeedToReconcilePodReadiness.
"""

from servelab.node.kubelet import state
from servelab.node.pods import podspec
from servelab.node.rules import actions, conditions


def moved(pod: state.State, old: podspec.Pod) -> bool:
    """Whether they have changed, and the pod would now be told to be ready, or not, otherwise.

    While containers are not ready, gates change nothing.
    """
    before, after = conditions.foreign(old), conditions.foreign(pod.pod)
    if all(before.get(gate) == after.get(gate) for gate in pod.pod.readiness_gates):
        return False
    if mistaken(pod):
        return True
    told = next((row for row in pod.rows if row["type"] == "Ready"), None)
    if told is None:
        return False
    status, _, message = conditions.ready(state.view(pod, pod.now_s))
    return (status, message or None) != (told["status"], told["message"])


def echo(pod: state.State) -> bool:
    """Whether a status was written that a kubelet answers, for its mistake, with one more sync."""
    if not mistaken(pod):
        return False
    wrote = [action.status for action in pod.out if isinstance(action, actions.WriteStatus)]
    if not wrote or wrote[-1] == pod.echoed:
        return False
    pod.echoed = wrote[-1]
    return pod.phase != "Failed"


def mistaken(pod: state.State) -> bool:
    """Whether a kubelet looks for its sidecars in the wrong list: it has some, and gates.

    It thinks that each status of such a pod has to change, and takes the pod anew with each.
    """
    return bool(pod.pod.readiness_gates) and any(spec.sidecar for spec in pod.pod.containers)
