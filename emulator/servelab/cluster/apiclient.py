"""The few calls that set-up makes to the API server, as plain documents over one connection."""

import contextlib
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from modelserve import errors
from servelab.cluster import certificates

TIMEOUT_REAL_S = 30.0
FIELD_MANAGER = "servelab"
APPLY = "application/apply-patch+yaml"

_ERRORS: Mapping[int, type[errors.ClusterError]] = {
    400: errors.Invalid,
    401: errors.Forbidden,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.Expired,
    422: errors.Invalid,
}


class ApiClient:
    """One caller's connection to the API server at ``server`` (https://host:port)."""

    def __init__(self, server: str, authority: Path, pair: certificates.Pair) -> None:
        self._address = urllib.parse.urlsplit(server).netloc
        self._context = ssl.create_default_context(cafile=str(authority))
        self._context.load_cert_chain(pair.certificate, pair.key)
        self._connection: http.client.HTTPSConnection | None = None
        self._plurals: dict[tuple[str, str], tuple[str, bool]] = {}

    def close(self) -> None:
        """Hang up."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def text(self, path: str) -> str:
        """GET something that is no JSON, like ``/readyz``."""
        return self._call("GET", path, None, "application/json").decode()

    def get(self, path: str) -> dict[str, Any]:
        """GET a document."""
        return _document(self._call("GET", path, None, "application/json"))

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """POST a document."""
        return _document(self._call("POST", path, body, "application/json"))

    def apply(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Server-side apply, as field manager ``servelab``, by force."""
        path = f"{self.path_of(manifest)}?fieldManager={FIELD_MANAGER}&force=true"
        return _document(self._call("PATCH", path, manifest, APPLY))

    def path_of(self, manifest: Mapping[str, Any]) -> str:
        """The URL path of what ``manifest`` describes. Invalid if its kind is unknown."""
        version = str(manifest["apiVersion"])
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        plural, namespaced = self._plural(version, root, str(manifest["kind"]))
        metadata = manifest["metadata"]
        middle = f"/namespaces/{metadata['namespace']}" if namespaced else ""
        return f"{root}{middle}/{plural}/{metadata['name']}"

    def _plural(self, version: str, root: str, kind: str) -> tuple[str, bool]:
        if (version, kind) not in self._plurals:
            for resource in self.get(root)["resources"]:
                if "/" not in resource["name"]:
                    key = (version, resource["kind"])
                    self._plurals[key] = (resource["name"], resource["namespaced"])
        try:
            return self._plurals[(version, kind)]
        except KeyError:
            raise errors.Invalid(f"the API server knows no {kind} in {version}", 404) from None

    def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None, content_type: str
    ) -> bytes:
        headers = {"Accept": "application/json", "Content-Type": content_type}
        content = None if body is None else json.dumps(body).encode()
        try:
            if self._connection is None:
                self._connection = http.client.HTTPSConnection(
                    self._address, timeout=TIMEOUT_REAL_S, context=self._context
                )
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
            payload = answer.read()
        except (OSError, http.client.HTTPException) as failure:
            self.close()
            raise errors.Unavailable(f"{method} {path}: no answer ({failure})") from failure
        if answer.status >= 300:
            kind = _ERRORS.get(answer.status, errors.Unavailable)
            raise kind(f"{method} {path}: {_message(payload)}", answer.status)
        return payload


def _document(payload: bytes) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(payload)
    return document


def _message(payload: bytes) -> str:
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(payload).get("message"))
    return payload.decode("utf-8", "replace")[:500]
