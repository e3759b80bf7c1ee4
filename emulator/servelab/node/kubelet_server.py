"""The kubelet's HTTPS API, as far as the API server asks for it: logs, pods, health."""

import asyncio
import json
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from modelserve import errors, ports
from modelserve.api import timestamps
from servelab.node import journal, wording

# What a kubelet says in place of the reason.
_WAITS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
NOT_YET = "exec, attach and port-forward are not served by emulated nodes yet\n"


class LoggedPod(Protocol):
    """A pod whose logs can be read."""

    @property
    def journals(self) -> dict[str, journal.Journal]: ...

    def entry(self, container: str) -> Mapping[str, Any] | None:
        """The container's entry in the pod's status; None if there is no such container."""
        ...


Lookup = Callable[[str, str], LoggedPod | None]


@dataclass(frozen=True, slots=True)
class Files:
    """PEM files: whose certificates are let in, and our own."""

    client_ca: Path
    certificate: Path
    key: Path


def server_context(files: Files) -> ssl.SSLContext:
    """TLS that lets in only who has a certificate of the client CA. Raises InputError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_cert_chain(files.certificate, files.key)
        context.load_verify_locations(files.client_ca)
    except (OSError, ssl.SSLError) as error:
        raise errors.InputError(
            f"the kubelet API's certificates cannot be used ({files.certificate}, {files.key}, "
            f"{files.client_ca}): {error}"
        ) from error
    return context


class KubeletServer:
    """One server for all emulated nodes: a pod's namespace and name say which."""

    def __init__(
        self,
        lookup: Lookup,
        pods: Callable[[], Iterable[ports.Object]],
        now_s: Callable[[], float],
    ) -> None:
        self._lookup = lookup
        self._pods = pods
        self._now_s = now_s
        self.app = web.Application()
        self.app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        self.app.router.add_get("/healthz", self._healthz)
        self.app.router.add_get("/pods", self._list_pods)
        for path in ("exec", "attach", "portForward", "run"):
            self.app.router.add_route("*", f"/{path}/{{tail:.*}}", self._not_yet)

    async def _healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _not_yet(self, request: web.Request) -> web.Response:
        return web.Response(status=501, text=NOT_YET)

    async def _list_pods(self, request: web.Request) -> web.Response:
        body = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": list(self._pods())}
        return web.Response(text=json.dumps(body), content_type="application/json")

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        where = request.match_info
        pod = self._lookup(where["namespace"], where["pod"])
        if pod is None:
            name = f"{where['pod']}_{where['namespace']}"
            return web.Response(status=404, text=f'pod "{name}" not found\n')
        entry = pod.entry(where["container"])
        if entry is None:
            text = f'container "{where["container"]}" not found in pod "{where["pod"]}"\n'
            return web.Response(status=404, text=text)
        try:
            query = read_query(request.query, self._now_s())
        except errors.InputError as error:
            return web.Response(status=400, text=f"{error}\n")
        refusal = _refusal(entry, where["container"], where["pod"], query)
        if refusal:
            return web.Response(status=400, text=refusal)
        found = pod.journals.setdefault(where["container"], journal.Journal())
        state = entry["state"]
        if query.previous and "terminated" in state:
            # A kubelet keeps one dead container: the one before was removed when this one died.
            gone = entry["lastState"]["terminated"]["containerID"]
            return web.Response(text=wording.log_gone(gone))
        if query.previous and "running" in state:
            return _whole(found.previous or (), query)
        if query.follow and "running" in state:
            return await _stream(request, found, query)
        return _whole(found.lines, query)


def read_query(query: Mapping[str, str], now_s: float) -> journal.Query:
    """Read the options of a log request. Raises InputError, naming the option."""

    def number(*names: str) -> int | None:
        text = next((query[name] for name in names if query.get(name)), None)
        if text is None or text == "all":
            return None
        if not text.isdecimal():
            raise errors.InputError(f"{names[0]} must be a number from 0 on, not {text!r}")
        return int(text)

    since_seconds, since_time = number("sinceSeconds"), query.get("sinceTime")
    since_s = None if since_seconds is None else now_s - since_seconds
    if since_time:
        try:
            since_s = timestamps.parse_time(since_time)
        except ValueError as error:
            raise errors.InputError(f"sinceTime must be RFC 3339, not {since_time!r}") from error
    return journal.Query(
        follow=query.get("follow") in ("true", "1"),
        previous=query.get("previous") in ("true", "1"),
        timestamps=query.get("timestamps") in ("true", "1"),
        tail_lines=number("tailLines", "tail"),
        since_s=since_s,
        limit_bytes=number("limitBytes"),
    )


def _refusal(entry: Mapping[str, Any], name: str, pod: str, query: journal.Query) -> str:
    """Why there is no such log; empty if there is."""
    if not entry:
        return wording.log_unavailable(name, pod)
    state, last = entry["state"], (entry.get("lastState") or {}).get("terminated")
    if query.previous:
        return "" if last else wording.no_previous(name, pod)
    waiting = state.get("waiting")
    if waiting is None or last:
        return ""
    return wording.waiting_to_start(name, pod, _WAITS.get(waiting["reason"], waiting["reason"]))


def _whole(lines: Iterable[journal.Line], query: journal.Query) -> web.Response:
    chosen = journal.select(lines, query)
    chunks = (line.render(timestamps=query.timestamps).encode() for line in chosen)
    body = b"".join(journal.cut(chunks, query.limit_bytes))
    return web.Response(body=body, content_type="text/plain", charset="utf-8")


async def _stream(
    request: web.Request, found: journal.Journal, query: journal.Query
) -> web.StreamResponse:
    response = web.StreamResponse()
    response.content_type = "text/plain"
    response.enable_chunked_encoding()
    await response.prepare(request)
    lines: asyncio.Queue[journal.Line | None] = asyncio.Queue()
    stop = found.follow(lines.put_nowait)
    left = query.limit_bytes
    try:
        for line in journal.select(found.lines, query):
            left = await _send(response, line, query, left)
        while left is None or left > 0:
            following = await lines.get()
            if following is None:
                break
            left = await _send(response, following, query, left)
        await response.write_eof()
    finally:
        stop()
    return response


async def _send(
    response: web.StreamResponse, line: journal.Line, query: journal.Query, left: int | None
) -> int | None:
    chunk = line.render(timestamps=query.timestamps).encode()
    await response.write(chunk if left is None else chunk[:left])
    return None if left is None else max(0, left - len(chunk))
