"""Which ModelServe a command is about: read it, in the namespace kubectl would take."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import yaml

from modelserve import errors, ports
from modelserve.adapters import kube

Result = TypeVar("Result")

_UNKNOWN_TO_IT = 401
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def namespace(given: str | None, kubeconfig: str | None) -> str:
    """The namespace given, else the current context's, else the pod's own, else ``default``."""
    if given:
        return given
    path = kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    for part in path.split(os.pathsep):
        file = Path(part).expanduser()
        if part and file.is_file():
            return _of_context(file) or "default"
    try:
        return _POD_NAMESPACE.read_text().strip() or "default"
    except OSError:
        return "default"


async def read(cluster: ports.Cluster, where: str, name: str) -> ports.Object:
    """The ModelServe. Raises InputError with what exists if there is none of that name."""
    try:
        return await cluster.get(ports.MODELSERVES, where, name)
    except errors.NotFound as error:
        there, _ = await cluster.list(ports.MODELSERVES, where)
        known = ", ".join(sorted(item["metadata"]["name"] for item in there)[:10])
        hint = f"there are: {known}" if known else "it has none; name another with -n"
        raise errors.InputError(f"no ModelServe {name!r} in namespace {where}: {hint}") from error


async def with_cluster(
    kubeconfig: str | None, work: Callable[[ports.Cluster], Awaitable[Result]]
) -> Result:
    """Do something with a connection, and close it. An API server that is not there is named."""
    async with await kube.KubeCluster.connect(kubeconfig) as cluster:
        try:
            return await work(cluster)
        except errors.Unavailable as error:
            if error.status:
                raise
            raise errors.Unavailable(
                f"the API server {cluster.host} does not answer: start it, or name another "
                f"kubeconfig with --kubeconfig or $KUBECONFIG\n({error})"
            ) from error
        except errors.Forbidden as error:
            if error.status != _UNKNOWN_TO_IT:
                raise
            raise errors.Forbidden(
                f"the API server {cluster.host} does not know us: the kubeconfig's token or "
                f"certificate is wrong or has expired\n({error})",
                error.status,
                error.reason,
            ) from error


def _of_context(file: Path) -> str | None:
    try:
        document = yaml.safe_load(file.read_text()) or {}
        current = document.get("current-context")
        contexts = {c["name"]: c.get("context") or {} for c in document.get("contexts") or ()}
        return contexts.get(current, {}).get("namespace")
    except (OSError, ValueError, yaml.YAMLError, AttributeError, KeyError, TypeError):
        # What is wrong with the file is told where it is used.
        return None
