"""What the operator is started with."""

from dataclasses import dataclass, field

from modelserve.adapters import instances
from modelserve.api import names


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's settings. ``time_scale``: emulated seconds per real one; others are real."""

    token: str  # what it presents at the gateways' internal ports
    kubeconfig: str | None = None
    namespace: str = names.SYSTEM_NAMESPACE
    time_scale: float = 1.0
    metrics_listen: tuple[str, int] = ("0.0.0.0", 8082)
    workers: int = 8
    identity: str = field(default_factory=instances.this_process)
    resync_real_s: float = 300.0
    lease_real_s: float = 15.0
