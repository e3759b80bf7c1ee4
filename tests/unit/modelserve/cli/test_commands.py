"""The commands of people: wake, history, completion; errors are one sentence."""

import datetime
import errno
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from modelserve import cli, errors, ports
from modelserve.api import names
from modelserve.api import status as statuses
from modelserve.cli import history, lazy, options, target, wake
from modelserve.testing import MemoryCluster

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


async def cluster(mode: str = "Auto") -> MemoryCluster:
    made = MemoryCluster()
    spec = {"scaling": {"mode": mode}}
    await made.create(ports.MODELSERVES, "ml", {"metadata": {"name": "llama"}, "spec": spec})
    return made


async def test_wake_writes_a_new_value_and_how_long_to_stay_awake() -> None:
    there = await cluster()
    await wake.annotate(there, "ml", "llama", NOW, 90.0)
    found = await there.get(ports.MODELSERVES, "ml", "llama")
    assert found["metadata"]["annotations"] == {
        names.WAKE: "2026-01-02T03:04:05+00:00",
        names.AWAKE_UNTIL: "2026-01-02T03:05:35+00:00",
    }


async def test_wake_says_that_it_does_nothing_in_mode_manual() -> None:
    with pytest.raises(errors.InputError, match="mode Manual"):
        await wake.annotate(await cluster("Manual"), "ml", "llama", NOW, None)


async def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(errors.InputError, match="there are: llama"):
        await target.read(await cluster(), "ml", "lama")


def test_the_history_shows_each_change_with_its_reason_and_message() -> None:
    record = statuses.ScaleRecord(
        from_=1, to=3, reason="BacklogBeyondColdStart", message="because " * 20, at="2026-01-02"
    )
    text = list(history.lines("llama", [record], 60))
    assert text[0] == "2026-01-02  1 → 3  BacklogBeyondColdStart"
    assert all(len(line) <= 60 for line in text)


def test_an_empty_history_says_so() -> None:
    assert list(history.lines("llama", [], 60)) == ["llama: the replica count has not changed yet"]


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("1h30m", 5400)])
def test_durations_are_read_as_people_write_them(text: str, seconds: int) -> None:
    assert options.Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize(
    "arguments",
    [
        ["wake", "llama", "--for", "soon"],
        ["operator"],
        ["operator", "--token-file", "nowhere"],
        ["completion", "tcsh"],
        ["nonsense"],
    ],
    ids=["duration", "no-token", "no-file", "shell", "command"],
)
def test_bad_arguments_exit_with_2_and_say_why(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli.main, arguments)
    assert result.exit_code == 2
    assert "Error: " in result.output
    assert "Traceback" not in result.output


def test_a_kubeconfig_that_is_not_there_is_one_sentence_and_exit_2() -> None:
    result = CliRunner().invoke(cli.main, ["history", "llama", "--kubeconfig", "nowhere.yaml"])
    assert result.exit_code == 2
    assert "nowhere.yaml" in result.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(cli.main, ["completion", shell])
    assert result.exit_code == 0
    assert "_MODELSERVE_COMPLETE" in result.output


def test_help_imports_no_client_library() -> None:
    heavy = "any(name.partition('.')[0] in ('kopf', 'kubernetes') for name in sys.modules)"
    code = f"import sys, modelserve.cli; sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-P", "-c", code], check=False).returncode == 0


def test_a_kubeconfig_that_is_no_text_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_bytes(b"\xd5\x00\xff")
    result = CliRunner().invoke(cli.main, ["history", "llama", "--kubeconfig", str(file)])
    assert (result.exit_code, "is no kubeconfig" in result.output) == (2, True)


KUBECONFIG = """\
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


def test_an_api_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    result = CliRunner().invoke(cli.main, ["history", "llama", "--kubeconfig", str(file)])
    assert result.exit_code == 1
    assert "the API server http://127.0.0.1:1 does not answer: start it" in result.output


async def unauthorized(cluster: ports.Cluster) -> None:
    raise errors.Forbidden("GET /x: Unauthorized (HTTP 401)", 401)


async def test_a_token_that_has_expired_is_told_as_that(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text(KUBECONFIG)
    with pytest.raises(errors.Forbidden, match="is wrong or has expired"):
        await target.with_cluster(str(file), unauthorized)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES], ids=["read-only", "not allowed"])
def test_what_cannot_be_written_is_one_sentence(number: int) -> None:
    def write() -> None:
        raise OSError(number, "no", "/data/x")

    table = {"write": ("unused", "Write.")}
    group = lazy.LazyGroup(name="program", table=table)
    group.get_command = lambda *_: click.Command("write", callback=write)  # type: ignore[method-assign]
    result = CliRunner().invoke(group, ["write"])
    assert (result.exit_code, result.output) == (1, "Error: /data/x: no\n")
