"""Commands that say all that a container does."""

import shlex
from typing import Any

import pytest

from servelab.node.kubelet import scripts


@pytest.mark.parametrize(
    ("command", "seconds", "code"),
    [
        ("true", 0, 0),
        ("/bin/false", 0, 1),
        ("sleep 30", 30, 0),
        ("sh -c 'sleep 1; exit 3'", 1, 3),
        ("/bin/sh -ec 'sleep 0.5 && sleep 2s'", 2.5, 0),
        ("bash -c 'exit 2; sleep 9'", 0, 2),
        ("sh -c 'false; true'", 0, 0),
        ("sh -c 'false && sleep 3 && true'", 0, 1),
        ("sh -c 'false && sleep 3; true'", 0, 0),
        ("sh -c 'true &&\n false'", 0, 1),
        ("sh -c 'false &&\n true'", 0, 1),
        ("sh -ec 'false; sleep 3'", 0, 1),
        ("sh -ec 'false && true; sleep 3'", 3, 0),
        ("sh -ec 'true && false; sleep 3'", 0, 1),
        ("sh -c 'false; exit'", 0, 1),
    ],
)
def test_plain_commands_are_understood(command: str, seconds: float, code: int) -> None:
    found = scripts.read(shlex.split(command))
    assert found is not None
    assert (found.seconds, found.exit_code) == (seconds, code)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "httpd -f",
        "sh",
        "sh script.sh",
        "sh -c 'while true; do sleep 1; done'",
        "sh -c 'echo $HOME'",
        "sh -c 'sleep 1 | cat'",
        "sh -c 'sleep 1 &'",
        "sh -c 'echo a > /tmp/file'",
        "sh -c \"trap 'exit 0' TERM; sleep 5\"",
        "sleep infinity",
        "sh -c 'exit x'",
        'sh -c "echo \'open"',
    ],
)
def test_what_is_more_than_that_says_nothing(command: str) -> None:
    words = ["sh", "-c", "echo 'open"] if "open" in command else shlex.split(command)
    assert scripts.read(words) is None


def test_echo_writes_the_log_and_the_last_words() -> None:
    text = "echo 'a; b'; sleep 1; echo two >&2; echo why > /dev/termination-log; exit 1"
    found = scripts.read(["sh", "-c", text.replace("'a; b'", "'a b'")])
    assert found == scripts.Script(1.0, 1, [(0.0, "a b"), (1.0, "two")], "why\n")


def test_a_job_of_such_a_command_completes(play: Any) -> None:
    command = {"command": ["sh", "-c", "echo done; sleep 2"]}
    pod = play(restartPolicy="Never", container=command).run(6)
    assert (pod.status["phase"], pod.logs) == ("Succeeded", ["done"])


@pytest.mark.parametrize(("image", "phase"), [("busybox:1", "Succeeded"), ("nginx:1", "Running")])
def test_arguments_are_the_command_of_an_image_without_an_entrypoint(
    play: Any, image: str, phase: str
) -> None:
    container = {"image": image, "args": ["true"]}
    assert play(restartPolicy="Never", container=container).run(6).status["phase"] == phase


def test_words_come_before_the_command(play: Any) -> None:
    pod = play({"exitAfterSeconds": 9}, container={"command": ["true"]}).run(6)
    assert "running" in pod.container()["state"]


def test_an_init_container_takes_as_long_as_it_says(play: Any) -> None:
    init = {"name": "init", "image": "docker.io/library/busybox:1", "command": ["sleep", "3"]}
    pod = play(initContainers=[init | {"imagePullPolicy": "IfNotPresent"}]).run(2.5)
    assert pod.status["phase"] == "Pending"
    assert pod.run(6).status["phase"] == "Running"
