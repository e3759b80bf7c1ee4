"""Starts etcd, kube-apiserver, kube-controller-manager and kube-scheduler on free ports.

Everybody identifies with a certificate of one throw-away authority, etcd included, so that other
users of the machine cannot read along.
"""

import dataclasses
import datetime
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from modelserve import errors
from servelab.cluster import (
    apiclient,
    binaries,
    certificates,
    directories,
    kubeconfig,
    loopback,
    processes,
    releases,
)

READY_TIMEOUT_REAL_S = 60.0
ETCD_GRACE_REAL_S = 3.0
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
ISSUER = "https://kubernetes.default.svc.cluster.local"
# Real kube-controller-manager and kube-scheduler limits are made for big clusters' API servers.
CLIENT_LIMITS = ("--kube-api-qps=500", "--kube-api-burst=1000")
# Go's collector runs half as often as it would: some 7 % less work for a write, for some 200 MB.
COLLECTOR_PERCENT = "200"
NAMES = tuple(component.value for component in releases.ALL)


@dataclasses.dataclass(frozen=True, slots=True)
class Credentials:
    """The files of everyone in the control plane."""

    authority: Path
    apiserver: certificates.Pair
    etcd: certificates.Pair
    etcd_client: certificates.Pair
    admin: certificates.Pair
    controller_manager: certificates.Pair
    scheduler: certificates.Pair
    kubelet_client: certificates.Pair
    kubelet: certificates.Pair
    accounts: certificates.Pair


def issue(
    directory: Path, now: datetime.datetime, kubelet_addresses: Sequence[str] = ()
) -> Credentials:
    """Make a new authority and everything it signs, in ``directory``."""
    authority = certificates.Authority(directories.private(directory), now)
    local = ("localhost",)
    service_names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", *local)
    return Credentials(
        authority=authority.certificate,
        apiserver=authority.server("apiserver", service_names, (loopback.ADDRESS, SERVICE_ADDRESS)),
        etcd=authority.server("etcd", local, (loopback.ADDRESS,)),
        etcd_client=authority.client("etcd-client", "kube-apiserver-etcd-client"),
        admin=authority.client("admin", "servelab-admin", ["system:masters"]),
        controller_manager=authority.client("controller-manager", "system:kube-controller-manager"),
        scheduler=authority.client("scheduler", "system:kube-scheduler"),
        kubelet_client=authority.client(
            "kubelet-client", "kube-apiserver-kubelet-client", ["system:masters"]
        ),
        kubelet=authority.server("kubelet", local, (loopback.ADDRESS, *kubelet_addresses)),
        accounts=certificates.signing_key(directory, "service-accounts"),
    )


class ControlPlane:
    """A running control plane. ``data`` keeps etcd's files, ``directory`` everything else."""

    def __init__(
        self,
        found: binaries.Binaries,
        family: processes.Family,
        directory: Path,
        data: Path,
        kubelet_addresses: Sequence[str] = (),
    ) -> None:
        """``kubelet_addresses`` are those of kubelets that do not listen on loopback."""
        self._binaries = found
        self._family = family
        self._directory = directory
        self._data = data
        self._api_port, self._etcd_port, self._peer_port = loopback.free_ports(3)
        self.server = f"https://{loopback.ADDRESS}:{self._api_port}"
        now = datetime.datetime.now(datetime.UTC)
        self.credentials = issue(directory / "pki", now, kubelet_addresses)
        self.kubeconfig = self._write_kubeconfig("kubeconfig", self.credentials.admin)
        self.admin = apiclient.ApiClient(
            self.server, self.credentials.authority, self.credentials.admin
        )

    def start(self) -> None:
        """Start all four. SetUpError with the end of a log if one dies or does not get ready."""
        self._run(releases.Component.ETCD, self._etcd_flags())
        apiserver = self._run(releases.Component.APISERVER, self._apiserver_flags())
        apiserver.wait_until(self.ready, READY_TIMEOUT_REAL_S)
        credentials = self.credentials
        manager = self._write_kubeconfig(
            "controller-manager.kubeconfig", credentials.controller_manager
        )
        self._run(releases.Component.CONTROLLER_MANAGER, self._manager_flags(manager))
        scheduler = self._write_kubeconfig("scheduler.kubeconfig", credentials.scheduler)
        self._run(releases.Component.SCHEDULER, self._scheduler_flags(scheduler))

    def ready(self) -> bool:
        """Whether the API server says it is ready. SetUpError if etcd is dead."""
        etcd = self._family.child(releases.Component.ETCD).death()
        if etcd is not None:
            raise errors.SetUpError(etcd.sentence())
        try:
            return self.admin.text("/readyz") == "ok"
        except errors.ClusterError:
            return False

    def wait_for_service_account(self, namespace: str) -> None:
        """Wait for the default service account, without which ``namespace`` refuses pods."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"

        def exists() -> bool:
            try:
                self.admin.get(path)
            except errors.ClusterError:
                return False
            return True

        manager = self._family.child(releases.Component.CONTROLLER_MANAGER)
        manager.wait_until(exists, READY_TIMEOUT_REAL_S)

    def stop(self, *, keep: bool) -> None:
        """Stop all four; with ``keep`` etcd is given the time to close its files."""
        self.admin.close()
        rest = [name for name in NAMES if name != releases.Component.ETCD]
        self._family.stop(rest, 0, signal.SIGKILL)
        self._family.stop([releases.Component.ETCD], ETCD_GRACE_REAL_S if keep else 0)

    def _run(self, component: releases.Component, flags: list[str]) -> processes.Child:
        arguments = [str(self._binaries[component]), *flags]
        return self._family.start(processes.Command(component.value, arguments, _environment()))

    def _write_kubeconfig(self, file: str, pair: certificates.Pair) -> Path:
        document = kubeconfig.for_certificate(self.server, self.credentials.authority, pair)
        return kubeconfig.write(self._directory / file, document)

    def _etcd_flags(self) -> list[str]:
        pair, authority = self.credentials.etcd, self.credentials.authority
        client = f"https://{loopback.ADDRESS}:{self._etcd_port}"
        peer = f"https://{loopback.ADDRESS}:{self._peer_port}"
        return [
            "--name=local",
            f"--data-dir={self._data}",
            "--unsafe-no-fsync",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=local={peer}",
            "--client-cert-auth",
            f"--trusted-ca-file={authority}",
            f"--cert-file={pair.certificate}",
            f"--key-file={pair.key}",
            "--peer-client-cert-auth",
            f"--peer-trusted-ca-file={authority}",
            f"--peer-cert-file={pair.certificate}",
            f"--peer-key-file={pair.key}",
        ]

    def _apiserver_flags(self) -> list[str]:
        credentials = self.credentials
        return [
            f"--etcd-servers=https://{loopback.ADDRESS}:{self._etcd_port}",
            f"--etcd-cafile={credentials.authority}",
            f"--etcd-certfile={credentials.etcd_client.certificate}",
            f"--etcd-keyfile={credentials.etcd_client.key}",
            f"--bind-address={loopback.ADDRESS}",
            f"--advertise-address={loopback.ADDRESS}",
            # Endpoints refuse loopback addresses, and nobody calls from inside a pod here.
            "--endpoint-reconciler-type=none",
            f"--secure-port={self._api_port}",
            f"--cert-dir={self._directory / 'pki'}",
            f"--tls-cert-file={credentials.apiserver.certificate}",
            f"--tls-private-key-file={credentials.apiserver.key}",
            f"--client-ca-file={credentials.authority}",
            f"--kubelet-certificate-authority={credentials.authority}",
            f"--kubelet-client-certificate={credentials.kubelet_client.certificate}",
            f"--kubelet-client-key={credentials.kubelet_client.key}",
            # As kubeadm has it.
            "--kubelet-preferred-address-types=InternalIP,ExternalIP,Hostname",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--allow-privileged=true",
            "--authorization-mode=RBAC",
            "--enable-admission-plugins=ExtendedResourceToleration",
            f"--service-account-issuer={ISSUER}",
            f"--service-account-key-file={credentials.accounts.certificate}",
            f"--service-account-signing-key-file={credentials.accounts.key}",
            "--service-account-max-token-expiration=720h",
            "--service-account-extend-token-expiration=false",
        ]

    def _manager_flags(self, config: Path) -> list[str]:
        return [
            f"--kubeconfig={config}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self.credentials.accounts.key}",
            f"--root-ca-file={self.credentials.authority}",
            "--leader-elect=false",
            "--secure-port=0",
            *CLIENT_LIMITS,
        ]

    def _scheduler_flags(self, config: Path) -> list[str]:
        return [
            f"--kubeconfig={config}",
            "--leader-elect=false",
            "--secure-port=0",
            *CLIENT_LIMITS,
        ]


def _environment() -> dict[str, str]:
    given = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"}
    return {"GOGC": COLLECTOR_PERCENT} | given
