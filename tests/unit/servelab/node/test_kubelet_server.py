"""The kubelet's API: logs as kubectl asks for them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import test_utils

from modelserve import errors
from servelab.node import journal, kubelet_server, podspec, records

PATH = "/containerLogs/default/p/engine"


class FakePod:
    """A pod with one container."""

    def __init__(self) -> None:
        raw = {"name": "engine", "image": "a:1"}
        spec = podspec.Container("engine", "a:1", "Always", False, False, (), raw)
        self.found = records.Record(spec)
        self.journals: dict[str, journal.Journal] = {}
        self.told = True

    def entry(self, container: str) -> dict[str, Any] | None:
        told = self.found.to_json() if self.told else {}
        return told if container == "engine" else None

    def started(self, *lines: str) -> "FakePod":
        self.found.start("uid", 1.0)
        log = self.journals.setdefault("engine", journal.Journal())
        for number, line in enumerate(lines):
            log.append(1000.0 + number, line)
        return self


@pytest.fixture
def pod() -> FakePod:
    return FakePod()


@pytest.fixture
async def client(pod: FakePod) -> AsyncIterator[test_utils.TestClient[Any, Any]]:
    def lookup(namespace: str, name: str) -> FakePod | None:
        return pod if (namespace, name) == ("default", "p") else None

    server = kubelet_server.KubeletServer(lookup, list, lambda: 1002.5)
    async with test_utils.TestClient(test_utils.TestServer(server.app)) as found:
        yield found


async def text(client: Any, query: str = "", path: str = PATH) -> tuple[int, str]:
    answer = await client.get(f"{path}?{query}")
    return answer.status, await answer.text()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "a\nb\nc\n"),
        ("tailLines=1", "c\n"),
        ("sinceSeconds=1", "c\n"),
        ("sinceTime=1970-01-01T00:16:41Z", "b\nc\n"),
        ("limitBytes=3", "a\nb"),
        ("tailLines=1&timestamps=true", "1970-01-01T00:16:42.000000000Z c\n"),
    ],
)
async def test_logs_are_cut_as_asked(client: Any, pod: FakePod, query: str, expected: str) -> None:
    pod.started("a", "b", "c")
    assert await text(client, query) == (200, expected)


async def test_a_container_that_never_ran_has_no_log(client: Any) -> None:
    expected = 'container "engine" in pod "p" is waiting to start: ContainerCreating'
    assert await text(client) == (400, expected)


async def test_there_is_no_previous_log_before_a_restart(client: Any, pod: FakePod) -> None:
    pod.started("a")
    expected = 'previous terminated container "engine" in pod "p" not found'
    assert await text(client, "previous=true") == (400, expected)


async def test_the_previous_log_is_kept_over_a_restart(client: Any, pod: FakePod) -> None:
    pod.started("a").found.end(1, 2.0)
    pod.found.again()
    pod.journals["engine"].rotate()
    pod.started("b")
    assert await text(client, "previous=true") == (200, "a\n")


async def test_while_it_waits_both_logs_are_the_last_one(client: Any, pod: FakePod) -> None:
    pod.started("a").found.end(1, 2.0)
    pod.found.back_off()
    assert await text(client, "previous=true") == await text(client) == (200, "a\n")


async def test_a_second_death_removes_the_log_before(client: Any, pod: FakePod) -> None:
    pod.started("a").found.end(1, 2.0)
    pod.found.again()
    pod.started("b").found.end(1, 3.0)
    status, body = await text(client, "previous=true")
    assert (status, body.split("://")[0]) == (
        200,
        "unable to retrieve container logs for containerd",
    )


async def test_a_container_of_which_nothing_is_told_has_no_log(client: Any, pod: FakePod) -> None:
    pod.told = False
    assert await text(client) == (400, 'container "engine" in pod "p" is not available')


async def test_a_missing_image_has_words_of_its_own(client: Any, pod: FakePod) -> None:
    pod.found.waiting = "ImagePullBackOff"
    assert (await text(client))[1].endswith("is waiting to start: trying and failing to pull image")


@pytest.mark.parametrize("path", ["/containerLogs/default/q/engine", f"{PATH}x"])
async def test_unknown_pods_and_containers_are_not_found(client: Any, path: str) -> None:
    assert (await text(client, path=path))[0] == 404


async def test_an_option_that_is_no_number_is_refused(client: Any, pod: FakePod) -> None:
    pod.started("a")
    expected = "tailLines must be a number from 0 on, not 'x'\n"
    assert await text(client, "tailLines=x") == (400, expected)


async def test_a_follower_gets_lines_as_they_come(client: Any, pod: FakePod) -> None:
    pod.started("a", "b")
    answer = await client.get(f"{PATH}?follow=true&tailLines=1")
    assert await answer.content.readline() == b"b\n"
    pod.journals["engine"].append(1003.0, "c")
    assert await answer.content.readline() == b"c\n"
    pod.journals["engine"].end()
    async with asyncio.timeout(5):
        assert await answer.content.read() == b""


async def test_exec_says_that_it_is_not_served(client: Any) -> None:
    answer = await client.post("/exec/default/p/engine?command=ls")
    assert (answer.status, await answer.text()) == (501, kubelet_server.NOT_YET)


def test_certificates_that_cannot_be_read_are_named(tmp_path: Any) -> None:
    missing = tmp_path / "none.crt"
    with pytest.raises(errors.InputError, match=r"none\.crt"):
        kubelet_server.server_context(kubelet_server.Files(missing, missing, missing))
