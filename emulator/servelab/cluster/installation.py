"""Puts ModelServe into a fresh control plane: what the chart renders, and an identity for each.

The chart is the same that others install, so the local cluster lives under the same rules (RBAC).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import helm_python
import yaml

from modelserve import errors
from servelab.cluster import apiclient, kubeconfig

NAMESPACE = "modelserve-system"
RELEASE = "modelserve"
TOKEN_LIFE_S = 7 * 24 * 3600
PACKAGED_CHART = Path(__file__).parent / "chart"
CHECKOUT_CHART = Path(__file__).parents[3] / "charts" / "modelserve"

# Others refer to these, so they go first.
_FIRST = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role")


def chart_directory() -> Path:
    """The chart: inside the package where it was installed from a wheel, else in the checkout."""
    for directory in (PACKAGED_CHART, CHECKOUT_CHART):
        if (directory / "Chart.yaml").is_file():
            return directory
    raise errors.SetUpError(
        "this installation has no Helm chart (charts/modelserve): install the package again, or "
        "work in a whole checkout"
    )


def render(directory: Path, time_scale: float) -> Sequence[dict[str, Any]]:
    """The chart without its workloads: CRDs, service accounts, RBAC, time scale; in order."""
    # Helm prints 60.0 as it is given, and the processes compare numbers: whole ones stay whole.
    scale = int(time_scale) if time_scale.is_integer() else time_scale
    values = {
        "workloads": {"enabled": False},
        "timeScale": scale,
        "emulator": {"checkReferences": True},
    }
    try:
        with helm_python.Chart.load(str(directory)) as chart:
            texts = [crd["data"] for crd in chart.crds]
            rendered = chart.render(values, name=RELEASE, namespace=NAMESPACE)
            texts += [text for name, text in rendered.items() if name.endswith((".yaml", ".yml"))]
    except helm_python.HelmError as failure:
        raise errors.SetUpError(
            f"the chart in {directory} cannot be rendered: {failure}"
        ) from failure
    return ordered([one for text in texts for one in yaml.safe_load_all(text) if one])


def ordered(manifests: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """Namespace first, then CRDs, accounts and roles, then the rest."""

    def rank(manifest: Mapping[str, Any]) -> int:
        kind = str(manifest["kind"])
        return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)

    return sorted(manifests, key=rank)


def install(admin: apiclient.ApiClient, manifests: Sequence[dict[str, Any]]) -> None:
    """Apply everything. Any ClusterError is the API server's own."""
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for manifest in manifests:
        admin.apply(manifest)


def namespaces_exist(admin: apiclient.ApiClient, manifests: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the namespaces of others that ``manifests`` use are there by now."""
    names = {manifest["metadata"].get("namespace", NAMESPACE) for manifest in manifests}
    try:
        for name in names - {NAMESPACE}:
            admin.get(f"/api/v1/namespaces/{name}")
    except errors.NotFound:
        return False
    return True


def established(admin: apiclient.ApiClient, manifests: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the API server serves all CRDs among ``manifests``."""
    return all(
        _is_established(admin.get(admin.path_of(manifest)))
        for manifest in manifests
        if manifest["kind"] == "CustomResourceDefinition"
    )


def account_kubeconfig(
    admin: apiclient.ApiClient, server: str, authority: Path, account: str
) -> dict[str, Any]:
    """A kubeconfig with a fresh token of service account ``account``, good for a week."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": TOKEN_LIFE_S},
    }
    try:
        token = admin.post(path, request)["status"]["token"]
    except errors.NotFound as failure:
        raise errors.SetUpError(
            f"the chart did not make the service account {account} in {NAMESPACE}"
        ) from failure
    return kubeconfig.for_token(server, authority, token)


def _is_established(definition: Mapping[str, Any]) -> bool:
    conditions = definition.get("status", {}).get("conditions", [])
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
