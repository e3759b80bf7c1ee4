"""Kopf's handlers: they feed the world and mark keys dirty, nothing else.

Only ``index`` and ``on.event``: neither puts finalizers or annotations on anything. The indexing
functions run for every object before any event handler does, so the first mark of a key finds all
kinds listed. Their own indexes stay empty; the world is what is read.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import kopf

from modelserve import ports
from modelserve.adapters import credentials
from modelserve.api import keys
from modelserve.api.keys import Key
from modelserve.reconciling.world import World
from modelserve.render import labels

Mark = Callable[[Key], None]

REQUEST_REAL_S = 30.0
CONNECT_REAL_S = 5.0
BACKOFFS_REAL_S = (0.3, 0.7, 1.3, 2.1, 3.7, 6.1, 11.3, 17.9)
PAGE = 500


class Handlers:
    """The handlers of one operator. ``mark`` gets each ModelServe that may have changed."""

    def __init__(self, known: World, mark: Mark, on_claims: Callable[[], None]) -> None:
        self._world = known
        self._mark = mark
        self._on_claims = on_claims
        self._feeds: dict[ports.Resource, Callable[[ports.Object], None]] = {
            ports.MODELSERVES: self._modelserve,
            ports.DEPLOYMENTS: self._deployment,
            ports.PODS: self._pod,
            ports.NODES: self._node,
        }

    def registry(
        self, login: Callable[..., Awaitable[kopf.ConnectionInfo]]
    ) -> kopf.OperatorRegistry:
        """A registry with nothing in it but these handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(login)
        for resource, feed in self._feeds.items():
            self._register(registry, resource, feed)
        return registry

    def changed(self, resource: ports.Resource, body: ports.Object) -> None:
        """An object is there, as new as this."""
        self._feeds[resource](body)

    def gone(self, resource: ports.Resource, body: ports.Object) -> None:
        """An object is there no more."""
        if resource is ports.MODELSERVES:
            self._mark(self._world.drop_modelserve(body))
            self._mark_namesakes(body)
        elif resource is ports.DEPLOYMENTS:
            self._mark_if(self._world.drop_deployment(body))
        elif resource is ports.PODS:
            self._mark_if(self._world.drop_pod(body))
            self._on_claims()
        else:
            self._world.drop_node(body)
            self._mark_all()

    def _register(
        self,
        registry: kopf.OperatorRegistry,
        resource: ports.Resource,
        feed: Callable[[ports.Object], None],
    ) -> None:
        selector = (resource.group, resource.version, resource.plural)

        async def remember(*, body: kopf.Body, **_: Any) -> None:
            feed(dict(body))

        async def notice(event: kopf.RawEvent, **_: Any) -> None:
            if event["type"] == "DELETED":
                self.gone(resource, event["object"])
            elif event["type"] is None:
                self._noticed_by_listing(resource, event["object"])

        kopf.index(*selector, registry=registry, id=f"remember-{resource.plural}")(remember)
        kopf.on.event(*selector, registry=registry, id=f"notice-{resource.plural}")(notice)

    def _noticed_by_listing(self, resource: ports.Resource, body: ports.Object) -> None:
        # The feed of this event came before everything was listed: look at the key again.
        if resource is ports.MODELSERVES:
            self._mark(Key(body["metadata"]["namespace"], body["metadata"]["name"]))

    def _modelserve(self, body: ports.Object) -> None:
        before = self._world.modelserves.get(Key.of(body))
        if self._world.put_modelserve(body):
            self._mark(Key.of(body))
            if before is None or keys.served_name(before) != keys.served_name(body):
                self._mark_namesakes(body)
                self._mark_namesakes(before or body)

    def _deployment(self, body: ports.Object) -> None:
        if self._world.put_deployment(body):
            self._mark_if(keys.owner(body))

    def _pod(self, body: ports.Object) -> None:
        claims = self._world.claims_version
        self._mark_if(self._world.put_pod(body))
        if self._world.claims_version != claims:
            self._on_claims()

    def _node(self, body: ports.Object) -> None:
        if self._world.put_node(body):
            self._mark_all()

    def _mark_if(self, key: Key | None) -> None:
        if key is not None and key in self._world.modelserves:
            self._mark(key)

    def _mark_namesakes(self, modelserve: ports.Object) -> None:
        for key in self._world.namesakes(modelserve):
            self._mark(key)

    def _mark_all(self) -> None:
        for key in tuple(self._world.modelserves):
            self._mark(key)


def login(source: credentials.Credentials) -> Callable[..., Awaitable[kopf.ConnectionInfo]]:
    """Kopf's login from the same credentials as our own client's."""

    async def login_handler(**_: Any) -> kopf.ConnectionInfo:
        configuration = await source.load()
        bearer: Mapping[str, Any] = (await configuration.auth_settings()).get("BearerToken", {})
        scheme, _blank, token = str(bearer.get("value") or "").partition(" ")
        return kopf.ConnectionInfo(
            server=configuration.host,
            ca_path=configuration.ssl_ca_cert,
            insecure=not configuration.verify_ssl,
            certificate_path=configuration.cert_file,
            private_key_path=configuration.key_file,
            scheme=scheme or None,
            token=token or None,
        )

    return login_handler


def settings() -> kopf.OperatorSettings:
    """Kopf's settings: quick retries, no Events of its own, Deployments filtered by the server."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.peering.standalone = True
    chosen.scanning.disabled = True
    chosen.networking.request_timeout = REQUEST_REAL_S
    chosen.networking.connect_timeout = CONNECT_REAL_S
    chosen.networking.error_backoffs = BACKOFFS_REAL_S
    chosen.watching.connect_timeout = CONNECT_REAL_S
    chosen.watching.chunk_size = PAGE
    selector = (ports.DEPLOYMENTS.group, ports.DEPLOYMENTS.version, ports.DEPLOYMENTS.plural)
    chosen.watching.label_selectors[selector] = labels.CHILDREN
    return chosen


def quiet() -> None:
    """Kopf tells of each event it sees; only what goes wrong is worth a line.

    What ends its watches it raises as well as logs, with a traceback for each task it ends: that
    is told once, by whoever gets it.
    """
    logging.getLogger("kopf").setLevel(logging.WARNING)
    for module in ("running", "orchestration"):
        logging.getLogger(f"kopf._core.reactor.{module}").setLevel(logging.CRITICAL)
