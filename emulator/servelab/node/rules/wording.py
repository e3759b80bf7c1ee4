"""What a kubelet says: texts of its events and messages, word for word as kubelet 1.37 does."""

from collections.abc import Sequence
from dataclasses import dataclass


def duration(seconds: float) -> str:
    """Write a duration as Go does, cut to milliseconds: ``796ms``, ``15.981s``, ``1m40.624s``."""
    milliseconds = int(seconds * 1000)
    if milliseconds < 1000:
        return f"{milliseconds}ms" if milliseconds else "0s"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest / 1000:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{tail}"
    return f"{minutes}m{tail}" if minutes else tail


def bracketed(names: Sequence[str], between: str = " ") -> str:
    """Go's form of a list: ``[a b]``."""
    return f"[{between.join(names)}]"


def pulling(image: str) -> str:
    return f'Pulling image "{image}"'


def pulled(image: str, pull_s: float, waited_s: float, size_bytes: int) -> str:
    """``pull_s`` is the pull alone, ``waited_s`` includes the wait for earlier pulls."""
    return (
        f'Successfully pulled image "{image}" in {duration(pull_s)} '
        f"({duration(waited_s)} including waiting). Image size: {size_bytes} bytes."
    )


def present(image: str) -> str:
    return f'Container image "{image}" already present on machine and can be accessed by the pod'


def never_pulled(image: str) -> str:
    return f'Container image "{image}" is not present with pull policy of Never'


def stopping(container: str) -> str:
    return f"Stopping container {container}"


def failed_probe_kill(container: str, kind: str) -> str:
    """``kind`` is startup or liveness."""
    return f"Container {container} failed {kind} probe, will be restarted"


def changed_kill(container: str) -> str:
    """Its image is another now."""
    return f"Container {container} definition changed, will be restarted"


def init_changed_kill(container: str) -> str:
    """The same of a sidecar."""
    return f"Init container {container} definition changed"


def resize_kill(container: str) -> str:
    return f"Container {container} resize requires restart"


def probe_failed(kind: str, why: str) -> str:
    """``kind`` is Startup, Readiness or Liveness."""
    return f"{kind} probe failed: {why}"


def refused(url: str, at: str) -> str:
    """What an HTTP request says where nothing listens ``at`` that address."""
    return f'Get "{url}": {not_connected(at)}'


def timed_out(url: str) -> str:
    """What an HTTP probe says of a server that takes the connection and never answers."""
    return (
        f'Get "{url}": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )


def back_off_event(container: str, namespace: str, pod: str, uid: str) -> str:
    return f"Back-off restarting failed container {container} in pod {pod}_{namespace}({uid})"


def back_off_message(delay_s: float, container: str, namespace: str, pod: str, uid: str) -> str:
    return (
        f"back-off {duration(delay_s)} restarting failed "
        f"container={container} pod={pod}_{namespace}({uid})"
    )


def waiting_to_start(container: str, pod: str, reason: str) -> str:
    """The log endpoint's answer for a container that never ran."""
    return f'container "{container}" in pod "{pod}" is waiting to start: {reason}'


def no_previous(container: str, pod: str) -> str:
    return f'previous terminated container "{container}" in pod "{pod}" not found'


def init_failed_probe_kill(container: str, kind: str) -> str:
    """Of a sidecar; ``kind`` is startup or liveness."""
    return f"Init container {container} failed {kind} probe"


def failed_probe_end(container: str, kind: str) -> str:
    """Where the pod's policy has it not start again."""
    return f"Container {container} failed {kind} probe"


def answered(status: int) -> str:
    """What an HTTP probe says of a status that is no success."""
    return f"HTTP probe failed with statuscode: {status}"


def not_connected(at: str) -> str:
    """What a TCP probe says where nothing listens ``at`` that address."""
    return f"dial tcp {at}: connect: connection refused"


def probe_errored(kind: str, why: str) -> str:
    """A probe that could not be made counts for nothing."""
    return f"{kind} probe errored and resulted in unknown state: {why}"


def exec_timed_out(command: Sequence[str], timeout_s: float) -> str:
    """What an exec probe says of a command that takes longer than it may."""
    return f'command timed out: "{" ".join(command)}" timed out after {duration(timeout_s)}'


def no_grpc(at: str, timeout_s: float) -> str:
    """What a gRPC probe says where nothing listens: it tries until its time is over."""
    return (
        f'timeout: failed to connect service "{at}" within {duration(timeout_s)}: '
        "context deadline exceeded"
    )


def back_off_pull(image: str) -> str:
    return f'Back-off pulling image "{image}"'


def pull_failed(image: str, why: str) -> str:
    return f'Failed to pull image "{image}": {why}'


def cannot_start(why: str) -> str:
    """What containerd 2 and runc say of a process that cannot be started."""
    return (
        "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
        f"runc create failed: unable to start container process: {why}"
    )


def no_seccomp_profile(name: str) -> str:
    """What containerd says of a profile that the node does not have."""
    path = f"/var/lib/kubelet/seccomp/{name}"
    return (
        f'failed to create containerd container: cannot load seccomp profile "{path}": '
        f"open {path}: no such file or directory"
    )


@dataclass(frozen=True, slots=True)
class Where:
    """A container; ``pod`` is name_namespace(uid)."""

    container: str
    pod: str

    def __str__(self) -> str:
        return f'for Container "{self.container}" in Pod "{self.pod}"'


def exec_hook_failed(command: Sequence[str], where: Where, code: int) -> str:
    return (
        f"Exec lifecycle hook ({bracketed(command)}) {where} failed - "
        f"error: command '{' '.join(command)}' exited with {code}: , message: \"\""
    )


def http_hook_failed(path: str, where: Where, url: str, at: str) -> str:
    """Nothing listens ``at`` that address."""
    return f"HTTP lifecycle hook ({path}) {where} failed - error: {refused(url, at)}"


def log_unavailable(container: str, pod: str) -> str:
    """The log endpoint's answer for a container of which the status tells nothing."""
    return f'container "{container}" in pod "{pod}" is not available'


def object_missing(kind: str, name: str) -> str:
    return f'{kind.lower()} "{name}" not found'


def key_missing(kind: str, key: str) -> str:
    """Of the keys that a volume takes from a ConfigMap or Secret."""
    if kind == "Secret":
        return f"references non-existent secret key: {key}"
    return f"configmap references non-existent config key: {key}"


def mount_failed(volume: str, why: str) -> str:
    return f'MountVolume.SetUp failed for volume "{volume}" : {why}'


def not_processed(unmounted: Sequence[str], failed: Sequence[str], why: Sequence[str]) -> str:
    """Of volumes by claim that cannot even be looked for; ``why`` in the order of ``failed``."""
    return (
        f"Unable to attach or mount volumes: unmounted volumes={bracketed(unmounted)}, "
        f"unattached volumes=[], failed to process volumes={bracketed(failed)}: {'; '.join(why)}"
    )


def not_prepared(why: str) -> str:
    """Of resource claims (DRA), before the sandbox is made (``dra/manager.go``)."""
    return f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"


def claim_missing(namespace: str, claim: str) -> str:
    return (
        f"error processing PVC {namespace}/{claim}: failed to fetch PVC from API server: "
        f'persistentvolumeclaims "{claim}" not found'
    )


def claim_unbound(namespace: str, claim: str) -> str:
    return f"error processing PVC {namespace}/{claim}: PVC is not bound"


def bad_image_name(image: str, why: str) -> str:
    return (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {why}'
    )


def log_never(container: str, pod: str) -> str:
    """The log endpoint's answer for a container that was given up before it ran."""
    return f'container "{container}" in pod "{pod}" is terminated'


def log_gone(container_id: str) -> str:
    """The log endpoint's answer for a container that the kubelet has removed."""
    return f"unable to retrieve container logs for {container_id}"


# What containerd says of a command in a container that has ended (in the moment of its end: that no
# running task was found).
NO_TASK = (
    "rpc error: code = Unknown desc = failed to exec in container: "
    "container is in CONTAINER_EXITED state"
)
DEADLINE = "Pod was active on the node longer than the specified deadline"
