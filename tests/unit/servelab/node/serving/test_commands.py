"""Exec, run and attach, over SPDY as the API server speaks it and over WebSockets."""

import asyncio
import gc
import json
from collections.abc import Callable
from typing import Any

import pytest

from modelserve import testing
from servelab.node.pods import journal
from servelab.node.serving import connections

V4 = "v4.channel.k8s.io"


async def execute(connect: Any, query: str, *, pod: str = "llm/engine", stdin: bytes = b"") -> Any:
    """Run a command; the client with what it got on 1 (status), 3 (output), 5 (errors)."""
    client = await connect()
    kinds = ["error", "stdout", "stderr", *(["stdin"] if "input=1" in query else [])]
    head = await client.ask(f"/exec/default/{pod}?output=1&error=1&{query}", V4)
    assert head.startswith("HTTP/1.1 101 "), head
    for number, kind in enumerate(kinds):
        client.open(2 * number + 1, streamtype=kind)
    if "stdin" in kinds:
        client.send(7, stdin, fin=True)
    await client.receive()
    return client


async def test_a_command_writes_to_its_streams_and_ends_well(connect: Any) -> None:
    client = await execute(connect, "command=echo&command=hello")
    assert client.got[3] == b"hello\n"
    assert json.loads(client.got[1]) == {"status": "Success"}


async def test_streams_of_commands_that_ended_are_freed_without_the_collector(
    connect: Any,
) -> None:
    def streams() -> int:
        return sum(isinstance(each, connections.Stream) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    before = streams()
    try:
        for _ in range(3):
            await (await execute(connect, "command=echo&command=hello")).close()
        await testing.settle(200)
        assert streams() == before
    finally:
        gc.enable()


async def test_nvidia_smi_lists_the_gpus_that_the_container_was_given(connect: Any) -> None:
    client = await execute(connect, "command=nvidia-smi&command=-L")
    assert client.got[3].startswith(b"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-")
    assert client.got[3].count(b"\n") == 1


async def test_an_exit_code_comes_as_a_cause(connect: Any) -> None:
    client = await execute(connect, "command=sh&command=-c&command=nope;exit%203")
    status = json.loads(client.got[1])
    assert client.got[5] == b"sh: 1: nope: not found\n"
    assert status["reason"] == "NonZeroExitCode"
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


async def test_a_missing_program_is_told_as_the_runtime_does(connect: Any) -> None:
    client = await execute(connect, "command=foo")
    assert json.loads(client.got[1])["message"].endswith(
        "OCI runtime exec failed: exec failed: unable to start container process: "
        'exec: "foo": executable file not found in $PATH'
    )


async def test_without_a_gpu_there_is_no_driver(connect: Any) -> None:
    client = await execute(connect, "command=nvidia-smi", pod="plain/main")
    assert b"executable file not found" in client.got[1]


async def test_a_script_can_come_through_the_input(connect: Any) -> None:
    script = b"echo $GREETING\nexit 4\necho never\n"
    client = await execute(connect, "input=1&command=sh", stdin=script)
    assert client.got[3] == b"hello llm\n"
    assert json.loads(client.got[1])["details"]["causes"][0]["message"] == "4"


async def test_input_is_copied_by_cat(connect: Any) -> None:
    client = await execute(connect, "input=1&command=cat", stdin=b"one\ntwo")
    assert client.got[3] == b"one\ntwo"


async def test_input_without_end_is_not_kept(connect: Any) -> None:
    client = await execute(connect, "input=1&command=wc", stdin=b"x" * (2 << 20))
    assert json.loads(client.got[1])["details"]["causes"][0]["message"] == "137"


async def test_a_terminal_prompts_and_echoes(connect: Any) -> None:
    client = await connect()
    await client.ask("/exec/default/llm/engine?input=1&output=1&tty=1&command=sh", V4)
    for number, kind in enumerate(("error", "stdin", "stdout", "resize")):
        client.open(2 * number + 1, streamtype=kind)
    client.send(3, b"echo hi\rexit\r")
    await client.receive()
    assert client.got[5] == b"# echo hi\r\nexit\r\nhi\r\n# "


async def test_a_client_without_version_4_gets_the_status_as_text(connect: Any) -> None:
    client = await connect()
    await client.ask("/exec/default/plain/main?output=1&command=false", "v2.channel.k8s.io")
    client.open(1, streamtype="error")
    client.open(3, streamtype="stdout")
    await client.receive()
    assert client.got[1].startswith(b"command terminated with non-zero exit code")


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/exec/default/nope/main?output=1", 404, "pod does not exist"),
        ("/exec/default/plain/nope?output=1", 500, 'container not found ("nope")'),
        ("/exec/default/plain/main", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("/exec/default/plain/other-uid/main?output=1", 404, "pod does not exist"),
    ],
)
async def test_what_cannot_be_entered_is_refused(
    http: Any, path: str, status: int, text: str
) -> None:
    answer = await http.post(path)
    assert (answer.status, await answer.text()) == (status, text)


async def test_a_container_that_does_not_run_is_not_found(http: Any, host: Any) -> None:
    host.pods[1].state = {"terminated": {"exitCode": 0}}
    answer = await http.post("/exec/default/plain/main?output=1")
    assert (answer.status, await answer.text()) == (500, 'container not found ("main")')


async def test_a_protocol_that_nobody_speaks_is_refused(connect: Any) -> None:
    client = await connect()
    head = await client.ask("/exec/default/plain/main?output=1", "v9.channel.k8s.io")
    assert head.startswith("HTTP/1.1 403 ")
    assert "X-Accepted-Stream-Protocol-Versions: v4.channel.k8s.io" in head


async def test_a_websocket_does_as_well(http: Any) -> None:
    protocols = ("v5.channel.k8s.io",)
    path = "/exec/default/plain/main?output=1&error=1&command=hostname"
    async with http.ws_connect(path, protocols=protocols) as socket:
        messages = [message.data async for message in socket]
    assert socket.protocol == "v5.channel.k8s.io"
    assert messages[:2] == [b"\x01", b"\x01plain\n"]
    assert json.loads(messages[-1][1:]) == {"metadata": {}, "status": "Success"}


async def test_a_websocket_can_close_its_input(http: Any) -> None:
    path = "/exec/default/plain/main?output=1&input=1&command=cat"
    async with http.ws_connect(path, protocols=("v5.channel.k8s.io",)) as socket:
        await socket.send_bytes(b"\x00abc")
        await socket.send_bytes(b"\xff\x00")
        messages = [message.data async for message in socket]
    assert b"\x01abc" in messages


async def test_run_answers_with_the_output(http: Any) -> None:
    answer = await http.post("/run/default/plain/main?cmd=echo+a+b")
    assert (answer.status, await answer.text()) == (200, "a b\n")


async def test_a_loop_goes_on_until_control_c(connect: Any) -> None:
    client = await connect()
    query = "input=1&output=1&tty=1&command=nvidia-smi&command=-L&command=-l&command=1"
    await client.ask(f"/exec/default/llm/engine?{query}", V4)
    for number, kind in enumerate(("error", "stdin", "stdout", "resize")):
        client.open(2 * number + 1, streamtype=kind)
    client.send(3, b"\x03")
    await client.receive()
    assert client.got[5].count(b"GPU 0: NVIDIA H100") >= 1
    assert json.loads(client.got[1])["details"]["causes"][0]["message"] == "130"


class Awaited(journal.Journal):
    """A log that tells when it is followed."""

    def __init__(self) -> None:
        super().__init__()
        self.followed = asyncio.Event()

    def follow(self, reader: Callable[[journal.Line | None], None]) -> Callable[[], None]:
        self.followed.set()
        return super().follow(reader)


async def test_attach_follows_what_the_container_writes(connect: Any, host: Any) -> None:
    client, log = await connect(), Awaited()
    host.pods[1].journals["main"] = log
    log.append(1.0, "before")
    await client.ask("/attach/default/plain/main?output=1", V4)
    client.open(1, streamtype="error")
    client.open(3, streamtype="stdout")
    async with asyncio.timeout(20):
        await log.followed.wait()
    log.append(2.0, "after")
    log.end()
    await client.receive()
    assert client.got[3] == b"after\n"
