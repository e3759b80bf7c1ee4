"""The client against small servers that behave, and some that do not."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

from servelab.trial import answer, client, load, payload, worker
from servelab.workload import arrivals

TOKEN = b'data: {"choices":[{"delta":{"content":"a"}}]}\n\n'
USAGE = b'data: {"choices":[],"usage":{"completion_tokens":1}}\n\n'
BODY = 2 * TOKEN + USAGE + answer.DONE
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
GOOD = HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
REQUEST = payload.streamed_chat("m", "h", arrivals.Arrival(0.0, 20, 1), 0)


@contextlib.asynccontextmanager
async def serving(answers: Callable[[int], bytes], per_connection: int = 99) -> AsyncIterator[int]:
    """A server that gives ``answers(n)`` to request n, some requests a connection; its port."""
    count = 0

    ended: list[asyncio.Task[None]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            for _ in range(per_connection):
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
                writer.write(answers(count))
                count += 1
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended.append(asyncio.create_task(talk(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*ended)


async def outcomes(port: int, number: int = 1) -> list[answer.Outcome]:
    sender = client.Client("127.0.0.1", port)
    try:
        return [await sender.send(REQUEST) for _ in range(number)]
    finally:
        sender.close()


async def test_an_answer_is_whole_and_its_connection_used_again() -> None:
    async with serving(lambda n: GOOD) as port:
        assert [outcome.problem for outcome in await outcomes(port, 3)] == ["", "", ""]


async def test_a_connection_that_the_server_closed_while_idle_is_replaced() -> None:
    async with serving(lambda n: GOOD, per_connection=1) as port:
        assert [outcome.problem for outcome in await outcomes(port, 3)] == ["", "", ""]


async def test_an_error_with_a_length_is_read() -> None:
    body = b'{"error": {"message": "no such model"}}'
    head = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with serving(lambda n: head + body) as port:
        (outcome,) = await outcomes(port)
    assert (outcome.status, outcome.problem) == (404, "status 404: no such model")


async def test_a_stream_that_breaks_off_is_a_problem() -> None:
    async with serving(lambda n: GOOD[:-40], per_connection=1) as port:
        (outcome,) = await outcomes(port)
    assert "ended early" in outcome.problem


async def test_something_else_than_http_is_a_problem() -> None:
    async with serving(lambda n: b"220 mail\r\n\r\n"[4:], per_connection=1) as port:
        (outcome,) = await outcomes(port)
    assert outcome.problem


async def test_nobody_there_is_a_problem() -> None:
    async with serving(lambda n: GOOD) as port:
        pass
    (outcome,) = await outcomes(port)
    assert outcome.problem


async def test_the_process_sends_the_whole_plan_and_tells_its_progress() -> None:
    told: list[load.Progress] = []
    plan_of = [arrivals.Arrival(at_s, 20, 1) for at_s in (0.0, 1.0, 1.0, 2.0)]
    async with serving(lambda n: GOOD) as port:
        plan = worker.Plan("127.0.0.1", port, "m", 100.0, 0, plan_of)
        async with load.Load(plan, told.append) as running:
            _, came = await running.run()
    assert sorted(outcome.at_s for outcome in came) == [0.0, 1.0, 1.0, 2.0]
    assert [outcome.problem for outcome in came] == [""] * 4
    assert told
