"""The processes of ours that run against the control plane, and how each is called."""

import dataclasses
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from servelab.cluster import control_plane, installation, loopback, processes

OPERATOR = "operator"
GATEWAY = "gateway"
EMULATOR = "emulator"
ALL = (EMULATOR, OPERATOR, GATEWAY)
TOKEN_BYTES = 32


@dataclasses.dataclass(frozen=True, slots=True)
class Addresses:
    """The ports they listen on, all on 127.0.0.1, the same over restarts."""

    gateway: int
    gateway_internal: int
    operator_metrics: int
    emulator_metrics: int

    @classmethod
    def choose(cls, gateway: int | None) -> "Addresses":
        """Free ports; the gateway's own if the user named one. SetUpError if that is taken."""
        first, *others = loopback.free_ports(4)
        if gateway is not None:
            first = loopback.require_free_port(gateway, "the gateway")
        return cls(first, *others)

    def urls(self) -> dict[str, str]:
        """Each address by name."""
        return {
            "gateway": _url(self.gateway),
            "gatewayInternal": _url(self.gateway_internal),
            "operatorMetrics": f"{_url(self.operator_metrics)}/metrics",
            "emulatorMetrics": f"{_url(self.emulator_metrics)}/metrics",
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Workloads:
    """Everything that the command lines depend on."""

    directory: Path
    data: Path
    credentials: control_plane.Credentials
    addresses: Addresses
    time_scale: float
    workers: int

    def kubeconfig(self, name: str) -> Path:
        """The kubeconfig of the process called ``name``."""
        return self.directory / f"{name}.kubeconfig"

    def write_token(self) -> None:
        """Make the bearer token that operator and gateway share."""
        path = self._token_file()
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(TOKEN_BYTES))

    def command(self, name: str) -> processes.Command:
        """How to start the process called ``name``."""
        flags = {
            OPERATOR: ("modelserve", self._operator_flags),
            GATEWAY: ("modelserve", self._gateway_flags),
            EMULATOR: ("servelab", self._emulator_flags),
        }
        package, special = flags[name]
        common = [
            f"--kubeconfig={self.kubeconfig(name)}",
            f"--namespace={installation.NAMESPACE}",
            f"--time-scale={self.time_scale:g}",
        ]
        arguments = [sys.executable, "-P", "-m", package, name, *common, *special()]
        return processes.Command(name, arguments, _environment(os.environ))

    def _operator_flags(self) -> Sequence[str]:
        return [
            f"--token-file={self._token_file()}",
            f"--metrics-listen={_address(self.addresses.operator_metrics)}",
        ]

    def _gateway_flags(self) -> Sequence[str]:
        return [
            f"--token-file={self._token_file()}",
            f"--listen={_address(self.addresses.gateway)}",
            f"--internal-listen={_address(self.addresses.gateway_internal)}",
        ]

    def _emulator_flags(self) -> Sequence[str]:
        return [
            f"--kubelet-host={loopback.ADDRESS}",
            f"--kubelet-client-ca={self.credentials.authority}",
            f"--kubelet-cert={self.credentials.kubelet.certificate}",
            f"--kubelet-key={self.credentials.kubelet.key}",
            f"--workers={self.workers}",
            f"--data-dir={self.data}",
            f"--metrics-listen={_address(self.addresses.emulator_metrics)}",
        ]

    def _token_file(self) -> Path:
        return self.directory / "gateway.token"


def account(name: str) -> str:
    """The service account of the process called ``name``."""
    return f"modelserve-{name}"


def _environment(base: Mapping[str, str]) -> dict[str, str]:
    # A user's KUBECONFIG must not lend a process more rights than its own.
    kept = {k: v for k, v in base.items() if k != "KUBECONFIG"}
    return kept | {"PYTHONUNBUFFERED": "1"}


def _address(port: int) -> str:
    return f"{loopback.ADDRESS}:{port}"


def _url(port: int) -> str:
    return f"http://{loopback.ADDRESS}:{port}"
