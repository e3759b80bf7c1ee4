"""The log of a process with engines, and how it ends where an address is taken."""

import socket
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from modelserve import errors
from servelab.engine import addresses
from servelab.engine.alone import recipe, running
from servelab.engine.alone.settings import Settings


async def test_lines_that_come_together_are_written_together() -> None:
    written: list[str] = []
    lines = running.Lines(written.append)
    lines.add("one")
    lines.add("two")
    assert written == []
    lines.flush()
    lines.flush()
    assert written == ["one\ntwo\n"]


async def test_a_log_that_nobody_reads_stops_nothing() -> None:
    def closed(text: str) -> None:
        raise BrokenPipeError

    lines = running.Lines(closed)
    lines.add("one")
    lines.flush()


def process(*engines: Mapping[str, Any], admin: running.Admin | None = None) -> running.Process:
    """Engines with these settings."""
    found = [
        recipe.make(Settings.model_validate(each), ["meta-llama/Llama-3.1-8B-Instruct"], {})
        for each in engines
    ]
    return running.Process(found, admin, lambda told: None, lambda text: None)


@pytest.fixture
def taken() -> Iterator[int]:
    """A port where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield sock.getsockname()[1]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
async def test_an_engine_does_not_share_its_address_with_the_admin_endpoint(host: str) -> None:
    with addresses.bound("127.0.0.1", 0, "") as sock:
        port = sock.getsockname()[1]
    said = f"{port}: engine one has that address; choose another with --admin-listen or --port"
    with pytest.raises(errors.SetUpError, match=said):
        await process(
            {"name": "one", "host": host, "port": port},
            admin=running.Admin("localhost", port),
        ).run()


async def test_a_taken_port_ends_the_process_at_once(taken: int) -> None:
    with pytest.raises(errors.SetUpError, match=f"{taken}: something listens .* --port or --host"):
        await process({"port": taken}).run()


async def test_a_taken_admin_port_ends_the_process_at_once(taken: int) -> None:
    with pytest.raises(errors.SetUpError, match=f"{taken}: something listens .* --admin-listen"):
        await process({"port": 0}, admin=running.Admin("127.0.0.1", taken)).run()


async def test_a_taken_port_for_metrics_ends_the_process_at_once(taken: int) -> None:
    words = f"tritonserver --model-repository /m/llama-3.1-8b --metrics-port {taken}"
    found = recipe.make(Settings(port=0), words.split(), {})
    with pytest.raises(errors.SetUpError, match=f"{taken}: something listens .* --metrics-port"):
        await running.Process([found], None, lambda told: None, lambda text: None).run()
