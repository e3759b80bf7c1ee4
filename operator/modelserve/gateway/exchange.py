"""One client's request from arrival to end: held, sent, relayed, or refused."""

import json
import logging
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from modelserve.decide import fleet, holding, routing
from modelserve.gateway import answers, calls, dispatch, metrics, relay, view

log = logging.getLogger(__name__)

EVENT_STREAM = "text/event-stream"
CLIENT_LEFT = 499  # as nginx counts it


@dataclass(frozen=True, slots=True)
class Context:
    """What all exchanges share."""

    dispatcher: dispatch.Dispatcher
    view: view.View
    session: aiohttp.ClientSession
    metrics: metrics.Metrics


class Exchange:
    """Run once. Cancelled when the client leaves; then everything is freed at once."""

    def __init__(
        self,
        context: Context,
        request: web.Request,
        call: calls.Call,
        route: routing.Route,
        began_real_s: float,
    ) -> None:
        self._context = context
        self._clock = context.dispatcher.clock
        self._request = request
        self._asked = call.model
        self._call: calls.Call | None = call.addressed_to(route.served_name)
        self._route = route
        self._began_real_s = began_real_s
        self._labels = (route.key.namespace, route.key.name)
        self._code = CLIENT_LEFT
        # Set once keep-alives have begun: from then on there is no status code to answer with.
        self._stream: web.StreamResponse | None = None

    async def run(self) -> web.StreamResponse:
        """The whole exchange, to the last byte."""
        dispatcher = self._context.dispatcher
        assert self._call is not None
        ticket = dispatcher.arrive(self._route.key, len(self._call.body))
        try:
            return await self._serve(ticket)
        except ConnectionError:
            # Of the client's connection: the engine's failures have names of their own. Who leaves
            # amid an answer is no error of ours, and the server would log what is raised as one.
            self._code = CLIENT_LEFT
            return self._unheard()
        finally:
            dispatcher.end(ticket)
            self._context.metrics.requests.labels(*self._series(), str(self._code)).inc()

    async def _serve(self, ticket: dispatch.Ticket) -> web.StreamResponse:
        while True:
            verdict = await self._verdict(ticket)
            if isinstance(verdict, holding.Refusal):
                return await self._refuse(verdict)
            try:
                upstream, sent_real_s = await self._send(verdict)
            except (relay.Refused, relay.Reset) as error:
                log.info("%s at %s: %s; trying again", self._route.key, verdict.name, error)
                self._context.metrics.retries.labels(*self._series()).inc()
                reached = isinstance(error, relay.Reset)
                self._context.dispatcher.bounce(ticket, reached=reached)
                continue
            # From here on nothing is sent a second time.
            self._call = None
            first_real_s = self._clock.real_s()
            try:
                response = await self._begin(verdict, ticket, upstream)
                self._observe(ticket, sent_real_s, first_real_s)
                return await self._relay(response, ticket, upstream)
            finally:
                upstream.close()

    def _series(self) -> tuple[str, str]:
        """Its labels; none for a model deleted meanwhile, whose series must not come back."""
        known = self._context.view.table.get(self._route.key) is not None
        return self._labels if known else ("", "")

    # --- holding ----------------------------------------------------------------------------------

    async def _verdict(self, ticket: dispatch.Ticket) -> dispatch.Verdict:
        assert self._call is not None
        streamed = self._call.streamed and self._route.keep_alive_real_s > 0
        limit_real_s = self._route.keep_alive_real_s if streamed else None
        while (verdict := await ticket.wait(self._clock, limit_real_s)) is None:
            await self._keep_alive()
        return verdict

    async def _keep_alive(self) -> None:
        if self._stream is None:
            headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
            self._stream = web.StreamResponse(headers=headers)
            self._stream.content_type = EVENT_STREAM
            await self._stream.prepare(self._request)
        route = self._context.view.table.get(self._route.key) or self._route
        await self._stream.write(f": {routing.waiting_comment(route)}\n\n".encode())

    async def _refuse(self, refusal: holding.Refusal) -> web.StreamResponse:
        self._context.metrics.refused.labels(*self._series(), refusal).inc()
        route = self._context.view.table.get(self._route.key) or self._route
        answer = answers.refused(refusal, self._asked, route, self._clock.wall_s())
        self._code = answer.status
        if self._stream is None:
            return answer.to_response()
        return await self._end_stream(answer.to_event())

    async def _end_stream(self, event: bytes) -> web.StreamResponse:
        assert self._stream is not None
        await self._stream.write(event)
        await self._stream.write_eof()
        return self._stream

    # --- relaying ---------------------------------------------------------------------------------

    async def _send(self, replica: fleet.Replica) -> tuple[relay.Upstream, float]:
        assert self._call is not None
        headers = relay.forwarded(self._request.headers)
        sent_real_s = self._clock.real_s()
        upstream = await relay.send(self._context.session, replica, self._call, headers)
        return upstream, sent_real_s

    async def _begin(
        self, replica: fleet.Replica, ticket: dispatch.Ticket, upstream: relay.Upstream
    ) -> web.StreamResponse:
        """The headers, unless they are out, and the first bytes."""
        self._code = upstream.response.status
        if self._stream is not None:
            if self._code == 200:
                await self._stream.write(upstream.first)
            return self._stream
        headers = relay.returned(upstream.response.headers)
        headers["X-ModelServe-Replica"] = replica.name
        headers["X-ModelServe-Held-Ms"] = str(round(ticket.held_real_s * 1000))
        response = web.StreamResponse(status=upstream.response.status, headers=headers)
        await response.prepare(self._request)
        await response.write(upstream.first)
        return response

    async def _relay(
        self, response: web.StreamResponse, ticket: dispatch.Ticket, upstream: relay.Upstream
    ) -> web.StreamResponse:
        """The rest, and the end."""
        tail = upstream.first[-4:]
        try:
            if self._stream is not None and upstream.response.status != 200:
                return await self._end_stream(await _error_event(upstream))
            while chunk := await upstream.next():
                await response.write(chunk)
                tail = (tail + chunk)[-4:]
        except relay.BrokenOff as error:
            log.warning("%s: the engine broke off: %s", self._route.key, error)
            self._code = 502
            return await self._break_off(response, tail)
        if upstream.response.status < 400:
            self._context.dispatcher.complete(ticket)
        await response.write_eof()
        return response

    async def _break_off(self, response: web.StreamResponse, tail: bytes) -> web.StreamResponse:
        """Tell the client that this is not the whole answer."""
        between = not tail or tail.endswith((b"\n\n", b"\r\n\r\n"))
        if response.content_type == EVENT_STREAM and between:
            self._stream = response
            return await self._end_stream(answers.broken_off().to_event())
        # In the middle of something: only a cut connection says so for certain.
        self._cut()
        return response

    def _unheard(self) -> web.StreamResponse:
        """What is answered to somebody who has gone."""
        self._cut()
        return web.Response(status=CLIENT_LEFT)

    def _cut(self) -> None:
        if self._request.transport is not None:
            self._request.transport.abort()

    def _observe(self, ticket: dispatch.Ticket, sent_real_s: float, first_real_s: float) -> None:
        now_real_s = self._clock.real_s()
        seen = self._context.metrics
        before_real_s = sent_real_s - self._began_real_s - ticket.held_real_s
        series = self._series()
        seen.hold_duration.labels(*series).observe(ticket.held_real_s)
        seen.first_byte.labels(*series).observe(now_real_s - self._began_real_s)
        seen.overhead.labels(*series).observe(max(0.0, before_real_s + now_real_s - first_real_s))


async def _error_event(upstream: relay.Upstream) -> bytes:
    """An engine's error answer as an event, in its own words if they have the usual shape."""
    body = upstream.first
    while chunk := await upstream.next():
        body += chunk
    status = upstream.response.status
    try:
        content = json.loads(body)
        if isinstance(content["error"], dict):
            return b"data: " + json.dumps(content).encode() + b"\n\n"
    except (ValueError, TypeError, KeyError):
        pass
    words = body.decode(errors="replace")[:500]
    return answers.Answer(
        status, "engine_error", f"the engine answered {status}: {words}"
    ).to_event()
