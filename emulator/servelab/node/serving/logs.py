"""Container logs, with a kubelet's options, answers and refusals."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from aiohttp import web

from modelserve import errors
from modelserve.api import timestamps
from servelab.node.pods import journal
from servelab.node.rules import wording
from servelab.node.serving import following, hosting

# What a kubelet says in place of the reason.
_WAITS = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")
UNREADABLE = '{"message": "Unable to decode query."}'
INVALID = '{"message": "Invalid request."}'


class Invalid(errors.InputError):
    """Options that can be read and make no sense."""


async def container_logs(request: web.Request, host: hosting.Host) -> web.StreamResponse:
    """``/containerLogs/{namespace}/{pod}/{container}``."""
    where = request.match_info
    try:
        query = read_query(request.query, host.unix_s())
    except Invalid:
        return web.Response(status=422, text=INVALID)
    except errors.InputError:
        return web.Response(status=400, text=UNREADABLE)
    served = host.lookup(where["namespace"], where["pod"])
    if served is None:
        return web.Response(status=404, text=f'pod "{where["pod"]}" does not exist')
    entry = served.entry(where["container"])
    if entry is None:
        text = f'container "{where["container"]}" not found in pod "{where["pod"]}"'
        return web.Response(status=404, text=text)
    refusal = _refusal(entry, where["container"], where["pod"], query)
    if refusal:
        return web.Response(status=400, text=refusal)
    found = served.journals.setdefault(where["container"], journal.Journal())
    state = entry["state"]
    if query.previous and (state.get("terminated") or {}).get("containerID"):
        # A kubelet keeps one dead container: the one before was removed when this one died.
        gone = entry["lastState"]["terminated"]["containerID"]
        return web.Response(text=wording.log_gone(gone))
    if query.stream == "Stderr":
        # Everything that emulated containers write is in one stream.
        return _whole((), query)
    if query.previous and "running" in state:
        return _whole(found.previous or (), query)
    if query.follow and "running" in state:
        return await _follow(request, found, query, host)
    return _whole(found.lines, query)


def read_query(query: Mapping[str, str], now_s: float) -> journal.Query:
    """Read the options of a request. Raises InputError where they cannot be read, else Invalid."""

    def number(name: str, least: int) -> int | None:
        text = query.get(name, "")
        if not text:
            return None
        try:
            found = int(text)
        except ValueError as error:
            raise errors.InputError(f"{name} is no number: {text!r}") from error
        if found < least:
            raise Invalid(f"{name} must be at least {least}, not {found}")
        return found

    def flag(name: str) -> bool:
        text = query.get(name, "")
        if text not in (*_TRUE, *_FALSE, ""):
            raise errors.InputError(f"{name} is neither true nor false: {text!r}")
        return text in _TRUE

    tail = query.get("tail", "")
    if tail and tail != "all":
        query = {**query, "tailLines": tail}
    elif tail:
        query = {key: value for key, value in query.items() if key != "tailLines"}
    stream = query.get("stream", "All")
    if stream not in ("All", "Stdout", "Stderr"):
        raise Invalid(f"there is no stream {stream!r}")
    tail_lines = number("tailLines", 0)
    if tail_lines is not None and stream != "All":
        raise Invalid("tailLines goes with both streams only")
    return journal.Query(
        follow=flag("follow"),
        previous=flag("previous"),
        timestamps=flag("timestamps"),
        tail_lines=tail_lines,
        since_s=_since(query, number("sinceSeconds", 1), now_s),
        limit_bytes=number("limitBytes", 1),
        stream=stream,
    )


def _since(query: Mapping[str, str], seconds: int | None, now_s: float) -> float | None:
    at = query.get("sinceTime")
    if at and seconds is not None:
        raise Invalid("at most one of sinceTime and sinceSeconds may be given")
    if seconds is not None:
        return now_s - seconds
    try:
        return timestamps.parse_time(at) if at else None
    except ValueError as error:
        raise errors.InputError(f"sinceTime must be RFC 3339, not {at!r}") from error


def _refusal(entry: Mapping[str, Any], name: str, pod: str, query: journal.Query) -> str:
    """Why there is no such log; empty if there is."""
    if not entry:
        return wording.log_unavailable(name, pod)
    state, last = entry["state"], (entry.get("lastState") or {}).get("terminated")
    kept = last and last.get("containerID")  # Not of one that was never made, or was removed.
    if query.previous:
        return "" if kept else wording.no_previous(name, pod)
    ended, waiting = state.get("terminated"), state.get("waiting")
    if ended and (ended.get("containerID") or kept):
        return ""
    if ended or (waiting and last and not kept):
        return wording.log_never(name, pod)
    if waiting is None or last:
        return ""
    return wording.waiting_to_start(name, pod, _WAITS.get(waiting["reason"], waiting["reason"]))


def _whole(lines: Iterable[journal.Line], query: journal.Query) -> web.Response:
    chosen = journal.select(lines, query)
    chunks = (line.render(timestamps=query.timestamps).encode() for line in chosen)
    body = b"".join(journal.cut(chunks, query.limit_bytes))
    return web.Response(body=body, content_type="text/plain", charset="utf-8")


async def _follow(
    request: web.Request, found: journal.Journal, query: journal.Query, host: hosting.Host
) -> web.StreamResponse:
    response = web.StreamResponse()
    response.content_type = "text/plain"
    response.enable_chunked_encoding()
    await response.prepare(request)

    def there() -> bool:
        return request.transport is not None and not request.transport.is_closing()

    left = query.limit_bytes
    # Who leaves as something is written to him ends it as well.
    with following.Follower(found) as follower, contextlib.suppress(ConnectionError):
        for line in journal.select(found.lines, query):
            left = await _send(response, line, query, left)
        while left is None or left > 0:
            coming = await follower.next_while(there, host.sleep_real)
            if coming is None:
                break
            left = await _send(response, coming, query, left)
        await response.write_eof()
    return response


async def _send(
    response: web.StreamResponse, line: journal.Line, query: journal.Query, left: int | None
) -> int | None:
    chunk = line.render(timestamps=query.timestamps).encode()
    await response.write(chunk if left is None else chunk[:left])
    return None if left is None else max(0, left - len(chunk))
