"""Kubeconfig files: whom to call, whom to trust, who we are."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from servelab.cluster import certificates

CLUSTER = "modelserve"


def for_certificate(server: str, authority: Path, pair: certificates.Pair) -> dict[str, Any]:
    """The kubeconfig of the holder of a client certificate."""
    user = {
        "client-certificate-data": _encoded(pair.certificate),
        "client-key-data": _encoded(pair.key),
    }
    return _document(server, authority, user)


def for_token(server: str, authority: Path, token: str) -> dict[str, Any]:
    """The kubeconfig of the holder of a service account token."""
    return _document(server, authority, {"token": token})


def write(path: Path, document: Mapping[str, Any]) -> Path:
    """Write a kubeconfig that only its owner can read."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(dict(document), sort_keys=False))
    return path


def _document(server: str, authority: Path, user: Mapping[str, str]) -> dict[str, Any]:
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    context = {"cluster": CLUSTER, "user": CLUSTER, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": CLUSTER, "user": dict(user)}],
        "contexts": [{"name": CLUSTER, "context": context}],
        "current-context": CLUSTER,
    }


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
