"""Container logs as kubectl asks for them."""

import asyncio
import logging
from typing import Any

import aiohttp
import pytest

from servelab.node.pods import journal
from servelab.node.serving import following, logs

PATH = "/containerLogs/default/plain/main"
ENDED = {"terminated": {"containerID": "containerd://abc"}}


async def text(http: Any, query: str = "", path: str = PATH) -> tuple[int, str]:
    answer = await http.get(f"{path}?{query}")
    return answer.status, await answer.text()


@pytest.fixture
def served(host: Any) -> Any:
    """The plain pod, which has said three lines."""
    host.pods[1].say("a", "b", "c")
    return host.pods[1]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "a\nb\nc\n"),
        ("tailLines=1", "c\n"),
        ("tailLines=0", ""),
        ("tail=2", "b\nc\n"),
        ("tail=all&tailLines=1", "a\nb\nc\n"),
        ("sinceSeconds=1", "c\n"),
        ("sinceTime=2027-01-15T07:59:58Z", "b\nc\n"),
        ("limitBytes=3", "a\nb"),
        ("stream=Stdout", "a\nb\nc\n"),
        ("stream=Stderr", ""),
        ("insecureSkipTLSVerifyBackend=true", "a\nb\nc\n"),
        ("tailLines=1&timestamps=true", "2027-01-15T07:59:59.000000000Z c\n"),
    ],
)
async def test_logs_are_cut_as_asked(http: Any, served: Any, query: str, expected: str) -> None:
    assert await text(http, query) == (200, expected)


@pytest.mark.parametrize("path", [PATH, "/nodes/dgx-0/metrics/resource"])
async def test_a_lost_node_hangs_up(http: Any, served: Any, host: Any, path: str) -> None:
    host.nodes["dgx-0"].lost_at_s = host.now_s
    with pytest.raises(aiohttp.ServerDisconnectedError):
        await text(http, path=path)


@pytest.mark.parametrize("query", ["tailLines=x", "follow=maybe", "sinceTime=yesterday"])
async def test_options_that_cannot_be_read_are_refused(http: Any, served: Any, query: str) -> None:
    assert await text(http, query) == (400, logs.UNREADABLE)


@pytest.mark.parametrize(
    "query",
    [
        "tailLines=-1",
        "limitBytes=0",
        "sinceSeconds=0",
        "sinceSeconds=1&sinceTime=2027-01-15T07:59:58Z",
        "stream=Stdin",
        "stream=Stdout&tailLines=1",
    ],
)
async def test_options_without_sense_are_refused(http: Any, served: Any, query: str) -> None:
    assert await text(http, query) == (422, logs.INVALID)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/containerLogs/default/nope/main", 'pod "nope" does not exist'),
        ("/containerLogs/default/plain/nope", 'container "nope" not found in pod "plain"'),
    ],
)
async def test_unknown_pods_and_containers_are_not_found(
    http: Any, path: str, expected: str
) -> None:
    assert await text(http, path=path) == (404, expected)


async def test_a_container_that_never_ran_has_no_log(http: Any, served: Any) -> None:
    served.state = {"waiting": {"reason": "ImagePullBackOff"}}
    expected = (
        'container "main" in pod "plain" is waiting to start: trying and failing to pull image'
    )
    assert await text(http) == (400, expected)


async def test_there_is_no_previous_log_before_a_restart(http: Any, served: Any) -> None:
    expected = 'previous terminated container "main" in pod "plain" not found'
    assert await text(http, "previous=true") == (400, expected)


async def test_the_previous_log_is_kept_over_a_restart(http: Any, served: Any) -> None:
    served.last = ENDED
    served.journals["main"].rotate()
    assert await text(http, "previous=true") == (200, "a\nb\nc\n")


async def test_while_it_waits_both_logs_are_the_last_one(http: Any, served: Any) -> None:
    served.state, served.last = {"waiting": {"reason": "CrashLoopBackOff"}}, ENDED
    assert await text(http, "previous=true") == await text(http) == (200, "a\nb\nc\n")


async def test_a_second_death_removes_the_log_before(http: Any, served: Any) -> None:
    served.state, served.last = {"terminated": {"containerID": "containerd://def"}}, ENDED
    expected = "unable to retrieve container logs for containerd://abc"
    assert await text(http, "previous=true") == (200, expected)


async def test_one_that_was_given_up_before_it_ran_again_has_its_last_log(
    http: Any, served: Any
) -> None:
    served.state, served.last = {"terminated": {"exitCode": 137}}, ENDED
    assert await text(http, "previous=true") == await text(http) == (200, "a\nb\nc\n")


async def test_one_that_was_given_up_before_it_ever_ran_has_none(http: Any, served: Any) -> None:
    served.state = {"terminated": {"exitCode": 137}}
    assert await text(http) == (400, 'container "main" in pod "plain" is terminated')


async def test_a_container_of_which_nothing_is_told_has_no_log(http: Any, served: Any) -> None:
    served.told = False
    assert await text(http) == (400, 'container "main" in pod "plain" is not available')


async def test_a_follower_gets_lines_as_they_come(http: Any, served: Any) -> None:
    answer = await http.get(f"{PATH}?follow=true&tailLines=1")
    assert await answer.content.readline() == b"c\n"
    log: journal.Journal = served.journals["main"]
    log.append(1.0, "d")
    assert await answer.content.readline() == b"d\n"
    log.end()
    async with asyncio.timeout(5):
        assert await answer.content.read() == b""


async def test_a_follower_is_cut_at_its_limit(http: Any, served: Any) -> None:
    answer = await http.get(f"{PATH}?follow=true&limitBytes=7")
    served.journals["main"].append(1.0, "dddd")
    async with asyncio.timeout(5):
        assert await answer.content.read() == b"a\nb\nc\nd"


async def test_followers_who_left_are_forgotten_though_nothing_is_written(
    http: Any, served: Any
) -> None:
    log: journal.Journal = served.journals["main"]
    for _ in range(5):
        answer = await http.get(f"{PATH}?follow=true&tailLines=1")
        assert await answer.content.readline() == b"c\n"
        answer.close()
    async with asyncio.timeout(5):
        while log.followers:  # noqa: ASYNC110 (nobody tells of a connection's end)
            await asyncio.sleep(0)


async def test_a_follower_who_leaves_as_a_line_comes_is_no_error(
    http: Any, served: Any, caplog: pytest.LogCaptureFixture
) -> None:
    log: journal.Journal = served.journals["main"]
    answer = await http.get(f"{PATH}?follow=true&tailLines=1")
    assert await answer.content.readline() == b"c\n"
    answer.close()
    async with asyncio.timeout(5):
        while log.followers:
            log.append(1.0, "d")
            await asyncio.sleep(0)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_who_follows_a_log_that_has_just_ended_is_told_so() -> None:
    log = journal.Journal()
    log.end()
    with following.Follower(log) as follower:
        async with asyncio.timeout(20):
            assert await follower.next() is None


def test_lines_that_a_follower_does_not_read_cost_no_more_than_the_log() -> None:
    log = journal.Journal()
    with following.Follower(log) as follower:
        for number in range(journal.MOST_LINES + 100):
            log.append(1.0, str(number))
        assert follower.unread == journal.MOST_LINES


TAKEN = {"terminated": {"exitCode": 137, "reason": "RestartingAllContainers"}}


async def test_one_that_was_taken_from_the_runtime_has_no_previous_log(
    http: Any, served: Any
) -> None:
    served.last = TAKEN
    expected = 'previous terminated container "main" in pod "plain" not found'
    assert await text(http, "previous=true") == (400, expected)
    assert (await text(http))[0] == 200


async def test_until_it_starts_again_it_has_none_at_all(http: Any, served: Any) -> None:
    served.state, served.last = {"waiting": {"reason": "RestartingAllContainers"}}, TAKEN
    assert await text(http) == (400, 'container "main" in pod "plain" is terminated')
