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


SHELLS = ("busybox", "alpine:3.22", "ubuntu", "debian:12", "python:3.13-slim", "node:24", "ruby")


@pytest.mark.parametrize("image", SHELLS)
def test_a_shell_or_interpreter_of_an_image_ends_at_once_without_an_input(
    play: Any, image: str
) -> None:
    pod = play(restartPolicy="Never", container={"image": image}).run(6)
    ended = pod.container()["state"]["terminated"]
    assert (pod.status["phase"], ended["reason"], ended["exitCode"]) == (
        "Succeeded",
        "Completed",
        0,
    )
    assert pod.logs == []


def test_one_that_is_to_run_for_ever_is_started_again_and_again(play: Any) -> None:
    pod = play(container={"image": "busybox:1"}).run(30)
    assert pod.container()["restartCount"] > 1
    assert pod.told("BackOff")


@pytest.mark.parametrize("image", SHELLS)
@pytest.mark.parametrize("open_", [{"stdin": True}, {"tty": True}, {"stdin": True, "tty": True}])
def test_an_open_input_or_a_terminal_keeps_it_waiting(
    play: Any, image: str, open_: dict[str, bool]
) -> None:
    probe = {"readinessProbe": {"tcpSocket": {"port": 80}, "periodSeconds": 1}}
    pod = play(container={"image": image, **open_, **probe}).run(30)
    assert "running" in pod.container()["state"]
    assert not pod.container()["ready"], "a shell listens on no port"


@pytest.mark.parametrize(("image", "code"), [("busybox", 137), ("python:3", 137), ("ruby:3", 143)])
def test_one_that_waits_is_killed_unless_it_handles_sigterm(
    play: Any, image: str, code: int
) -> None:
    pod = play(container={"image": image, "stdin": True, "tty": True}).run(5).delete()
    assert pod.run(20).container()["state"]["terminated"]["exitCode"] == code


@pytest.mark.parametrize("command", [["bash"], ["/bin/sh"], ["python3"]])
def test_a_shell_by_name_is_one_in_any_image(play: Any, command: list[str]) -> None:
    container = {"image": "nginx:1", "command": command}
    assert play(restartPolicy="Never", container=container).run(6).status["phase"] == "Succeeded"


def test_hello_world_greets_and_ends(play: Any) -> None:
    pod = play(restartPolicy="Never", container={"image": "hello-world"}).run(6)
    assert pod.status["phase"] == "Succeeded"
    assert pod.logs[:2] == ["", "Hello from Docker!"]


def test_hello_world_holds_no_other_program(play: Any) -> None:
    container = {"image": "hello-world", "args": ["true"]}
    pod = play(restartPolicy="Never", container=container).run(6)
    ended = pod.container()["state"]["terminated"]
    assert (pod.status["phase"], ended["exitCode"]) == ("Failed", 128)
    assert 'exec: "true": executable file not found in $PATH' in ended["message"]


def test_words_come_before_the_command(play: Any) -> None:
    pod = play({"exitAfterSeconds": 9}, container={"command": ["true"]}).run(6)
    assert "running" in pod.container()["state"]


def test_an_init_container_takes_as_long_as_it_says(play: Any) -> None:
    init = {"name": "init", "image": "docker.io/library/busybox:1", "command": ["sleep", "3"]}
    pod = play(initContainers=[init | {"imagePullPolicy": "IfNotPresent"}]).run(2.5)
    assert pod.status["phase"] == "Pending"
    assert pod.run(6).status["phase"] == "Running"
