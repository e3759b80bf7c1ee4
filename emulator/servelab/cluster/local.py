"""The local cluster: control plane, installation and our processes, started and stopped as one.

with local.LocalCluster(local.Options(time_scale=60)) as cluster:
    ... cluster.kubeconfig, cluster.gateway_url ...
"""

import collections
import dataclasses
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from modelserve import errors
from servelab.cluster import (
    binaries,
    control_plane,
    directories,
    home,
    installation,
    kubeconfig,
    processes,
    record,
    releases,
    reporting,
    workloads,
)

READY_TIMEOUT_REAL_S = 60.0
GRACE_REAL_S = 5.0
DEFAULT_NAME = "default"


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What a cluster is started with.

    ``keep`` leaves etcd's data and the logs when it stops; None keeps them in a directory that the
    caller named, and not in one of our own. ``time_scale`` is emulated seconds in a real one.
    """

    name: str = DEFAULT_NAME
    data_dir: Path | None = None
    time_scale: float = 1.0
    processes: Sequence[str] = workloads.ALL
    workers: int = 1
    gateway_port: int | None = None
    kubernetes_bin: Path | None = None
    keep: bool | None = None

    @property
    def directory(self) -> Path:
        """Where everything of the cluster stands."""
        return self.data_dir.absolute() if self.data_dir else directories.state(self.name)

    @property
    def keeps(self) -> bool:
        """Whether data outlives the cluster."""
        return self.data_dir is not None if self.keep is None else self.keep


@dataclasses.dataclass(frozen=True, slots=True)
class _Running:
    """All that exists only between start and stop."""

    family: processes.Family
    plane: control_plane.ControlPlane
    workloads: workloads.Workloads
    # By name, of what was started and nobody stopped: the newest process, and how often it was
    # brought back.
    started: dict[str, record.Process] = dataclasses.field(default_factory=dict)
    restarts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)


class LocalCluster:
    """One cluster, held together by this process. Not for several threads at once."""

    def __init__(
        self, options: Options | None = None, reporter: reporting.Reporter | None = None
    ) -> None:
        self.options = options or Options()
        self.home = home.Home(self.options.name, self.options.directory, keep=self.options.keeps)
        self._reporter = reporter or reporting.Silent()
        self._running: _Running | None = None
        self._installed = False

    @property
    def control_plane(self) -> control_plane.ControlPlane:
        """The control plane. InputError while the cluster does not run."""
        return self._require().plane

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.control_plane.kubeconfig

    @property
    def urls(self) -> Mapping[str, str]:
        """Addresses by name: api, gateway, gatewayInternal, operatorMetrics, emulatorMetrics."""
        running = self._require()
        return {"api": running.plane.server, **running.workloads.addresses.urls()}

    @property
    def gateway_url(self) -> str:
        """The one address of all models, ``http://host:port``."""
        return self.urls["gateway"]

    @property
    def running(self) -> Sequence[str]:
        """Names of the processes that were started and have not ended."""
        return () if self._running is None else self._running.family.names()

    @property
    def wanted(self) -> Sequence[str]:
        """Names of the processes that were started and nobody stopped, ended or not."""
        return () if self._running is None else tuple(self._running.started)

    def start(self) -> "LocalCluster":
        """Start everything and wait until it serves. SetUpError with the reason, nothing left."""
        found = binaries.find(self._reporter, self.options.kubernetes_bin)
        if self.home.open():
            self._reporter.say("cleared what a crashed cluster had left")
        try:
            self._start_control_plane(found)
            self.start_processes(self.options.processes)
            self.control_plane.wait_for_service_account("default")
        except BaseException:
            self.stop()
            raise
        return self

    def start_processes(self, names: Sequence[str] = workloads.ALL) -> None:
        """Start those of operator, gateway and emulator that do not run; wait until they serve."""
        running = self._require()
        wanted = [name for name in names if name not in self.running]
        if wanted:
            self.install()
            self._reporter.say(f"starting {', '.join(wanted)}")
        try:
            children = [running.family.start(running.workloads.command(name)) for name in wanted]
            self._note_started()
            for child in children:
                child.wait_until(child.is_ready, READY_TIMEOUT_REAL_S)
        except BaseException:
            running.family.stop(wanted, 0)
            raise
        self._write_record(ready=True)

    def install(self) -> None:
        """Apply the chart's CRDs and RBAC, and make each process its kubeconfig; once a run."""
        if self._installed:
            return
        running = self._require()
        chart = installation.chart_directory()
        manifests = installation.render(chart, float(self.options.time_scale))
        admin = running.plane.admin
        apiserver = running.family.child(releases.Component.APISERVER)
        apiserver.wait_until(
            lambda: installation.namespaces_exist(admin, manifests), READY_TIMEOUT_REAL_S
        )
        installation.install(admin, manifests)
        running.workloads.write_token()
        authority = running.plane.credentials.authority
        for name in workloads.ALL:
            document = installation.account_kubeconfig(
                admin, running.plane.server, authority, workloads.account(name)
            )
            kubeconfig.write(running.workloads.kubeconfig(name), document)
        apiserver.wait_until(
            lambda: installation.established(admin, manifests), READY_TIMEOUT_REAL_S
        )
        self._installed = True

    def stop(self) -> None:
        """Stop everything; leaves no process, and no file but what is to be kept."""
        running, self._running, self._installed = self._running, None, False
        if running is not None:
            running.family.stop(workloads.ALL, GRACE_REAL_S)
            running.plane.stop(keep=self.home.keep)
        self.home.close()
        if running is not None:
            running.family.close()

    def command(self, name: str) -> Sequence[str]:
        """The words that start a process; for one more of it, with flags that differ put after."""
        return tuple(self._require().workloads.command(name).arguments)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End one process at once, as a crash would. InputError if it does not run."""
        running = self._require()
        running.family.child(name)
        running.family.stop([name], GRACE_REAL_S, number)
        running.started.pop(name, None)
        self._write_record(ready=True)

    def restart(self, name: str, number: signal.Signals = signal.SIGTERM) -> None:
        """End one of operator, gateway, emulator and start it again; wait until it serves."""
        if name not in workloads.ALL:
            raise errors.InputError(
                f"{name!r} cannot be restarted: choose one of {', '.join(workloads.ALL)}"
            )
        if name in self.running:
            self.kill(name, number)
        self.start_processes([name])

    def deaths(self) -> Sequence[processes.Death]:
        """Processes that ended by themselves since the last call; the record still names them."""
        return self._require().family.deaths()

    def revive(self, name: str) -> None:
        """Start a process that ended by itself as it was; nothing is waited for."""
        running = self._require()
        running.family.start_again(name)
        running.restarts[name] += 1
        self._write_record(ready=True)

    def _note_started(self) -> None:
        running = self._require()
        for name in self.running:
            running.started[name] = record.Process.of(running.family.child(name).pid)

    def _start_control_plane(self, found: binaries.Binaries) -> None:
        addresses = workloads.Addresses.choose(self.options.gateway_port)
        family = processes.Family(self.home.logs)
        if not self.home.keep:
            family.guard.remove_with_us(self.home.directory)
        try:
            plane = control_plane.ControlPlane(found, family, self.home.run, self.home.etcd)
        except BaseException:
            family.close()
            raise
        ours = workloads.Workloads(
            self.home.run,
            self.home.emulator,
            plane.credentials,
            addresses,
            self.options.time_scale,
            self.options.workers,
        )
        self._running = _Running(family, plane, ours)
        self._reporter.say("starting etcd and Kubernetes " + releases.KUBERNETES)
        plane.start()
        self._write_record(ready=False)

    def _write_record(self, *, ready: bool) -> None:
        self._note_started()
        running = self._require()
        record.Record(
            name=self.options.name,
            supervisor=record.Process.of(os.getpid()),
            children=dict(running.started),
            kubeconfig=str(self.kubeconfig),
            urls=self.urls,
            time_scale=self.options.time_scale,
            kubernetes=releases.KUBERNETES,
            keep=self.home.keep,
            ready=ready,
            restarts=dict(running.restarts),
        ).write(self.home.directory)

    def _require(self) -> _Running:
        if self._running is None:
            raise errors.InputError("the local cluster is not running: call start() first")
        return self._running

    def __enter__(self) -> "LocalCluster":
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
