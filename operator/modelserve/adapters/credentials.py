"""Where the API server is and who we are there, read by the official client's own loaders.

The client's generated models and its dynamic client are never imported: with its configuration and
REST modules alone a process needs some 23 MB beyond aiohttp, and 0.2 s.
"""

import logging
import os
import urllib.parse
from pathlib import Path
from typing import Any

import yaml
from kubernetes.aio import config as kube_config
from kubernetes.aio.client import configuration as kube_configuration

from modelserve import errors

log = logging.getLogger(__name__)

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Credentials:
    """A kubeconfig file, or the service account of the pod we run in."""

    def __init__(self, kubeconfig: str | None) -> None:
        """Without a path: the pod's service account, else $KUBECONFIG, else ~/.kube/config."""
        self._in_cluster = not kubeconfig and bool(os.environ.get("KUBERNETES_SERVICE_HOST"))
        default = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        self._path = kubeconfig or default

    async def load(self) -> kube_configuration.Configuration:
        """Read them. Raises InputError if there is no file, or it makes no sense."""
        configuration = kube_configuration.Configuration()
        try:
            await self._load_into(configuration)
        except (kube_config.ConfigException, yaml.YAMLError) as error:
            raise errors.InputError(f"{self._source} cannot be used: {_one_line(error)}") from error
        except OSError as error:
            raise errors.InputError(f"{self._source} cannot be read: {error}") from error
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            # The loader meets an empty or malformed file with one of these.
            why = f" ({_one_line(error)})" if isinstance(error, ValueError) else ""
            raise errors.InputError(
                f"{self._source} is no kubeconfig{why}: it needs clusters, users, contexts and a "
                "current-context, as `kubectl config view` shows them; name another file with "
                "--kubeconfig"
            ) from error
        # As kubectl does: a proxy from the environment is never meant for this machine itself.
        host = urllib.parse.urlsplit(configuration.host).hostname
        configuration.client_session_kwargs = {"trust_env": host not in _LOOPBACK}
        return configuration

    async def refresh(self, configuration: kube_configuration.Configuration) -> None:
        """Take over a token that changed (a rotated token file, an exec plug-in's new one)."""
        try:
            fresh = await self.load()
        except errors.InputError as error:
            # A file that is being replaced just now; the old token may yet do.
            log.warning("%s", error)
        else:
            configuration.api_key.update(fresh.api_key)

    async def headers(self, configuration: kube_configuration.Configuration) -> dict[str, str]:
        """What identifies us in a request; a pod's token file is read again every minute.

        Raises Unavailable if that file cannot be read just now.
        """
        try:
            settings: dict[str, Any] = dict(await configuration.auth_settings())
        except (OSError, kube_config.ConfigException) as error:
            raise errors.Unavailable(f"{self._source} cannot be read: {error}") from error
        return {s["key"]: s["value"] for s in settings.values() if s["value"]}

    @property
    def _source(self) -> str:
        return "the pod's service account" if self._in_cluster else self._path

    async def _load_into(self, configuration: kube_configuration.Configuration) -> None:
        if self._in_cluster:
            kube_config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
            return
        if not self._exists():
            raise errors.InputError(
                f"there is no kubeconfig file {self._path}; name one with --kubeconfig"
            )
        await kube_config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=self._path, client_configuration=configuration, persist_config=False
        )

    def _exists(self) -> bool:
        return any(Path(p).expanduser().is_file() for p in self._path.split(os.pathsep) if p)


def _one_line(error: Exception) -> str:
    # YAML's errors draw a picture of the place.
    return " ".join(str(error).split()) or type(error).__name__
