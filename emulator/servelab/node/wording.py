"""What a kubelet says: texts of its events and messages, word for word as kubelet 1.37 does."""

from collections.abc import Sequence


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


def bracketed(names: Sequence[str]) -> str:
    """Go's form of a list: ``[a b]``."""
    return f"[{' '.join(names)}]"


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


def resize_kill(container: str) -> str:
    return f"Container {container} resize requires restart"


def probe_failed(kind: str, why: str) -> str:
    """``kind`` is Startup, Readiness or Liveness."""
    return f"{kind} probe failed: {why}"


def refused(scheme: str, ip: str, port: int, path: str) -> str:
    """What an HTTP probe says of a port on which nothing listens."""
    return f'Get "{scheme}://{ip}:{port}{path}": dial tcp {ip}:{port}: connect: connection refused'


def timed_out(scheme: str, ip: str, port: int, path: str) -> str:
    """What an HTTP probe says of a server that takes the connection and never answers."""
    return (
        f'Get "{scheme}://{ip}:{port}{path}": context deadline exceeded '
        "(Client.Timeout exceeded while awaiting headers)"
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


def not_connected(ip: str, port: int) -> str:
    """What a TCP probe says of a port on which nothing listens."""
    return f"dial tcp {ip}:{port}: connect: connection refused"


def no_grpc(ip: str, port: int, timeout_s: float) -> str:
    """What a gRPC probe says where nothing listens: it tries until its time is over."""
    return (
        f'timeout: failed to connect service "{ip}:{port}" within {duration(timeout_s)}: '
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


def post_start_failed(hook: str, container: str, pod: str, why: str) -> str:
    """``pod`` is name_namespace(uid)."""
    return (
        f'Exec lifecycle hook ({hook}) for Container "{container}" in Pod "{pod}" failed - '
        f'error: {why}, message: ""'
    )


def log_unavailable(container: str, pod: str) -> str:
    """The log endpoint's answer for a container of which the status tells nothing."""
    return f'container "{container}" in pod "{pod}" is not available'


def mount_failed(volume: str, why: str) -> str:
    return f'MountVolume.SetUp failed for volume "{volume}" : {why}'


def bad_image_name(image: str, why: str) -> str:
    return (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": {why}'
    )


def log_gone(container_id: str) -> str:
    """The log endpoint's answer for a container that the kubelet has removed."""
    return f"unable to retrieve container logs for {container_id}"


DEADLINE = "Pod was active on the node longer than the specified deadline"
