"""The command line itself: quick help, clear refusals."""

import importlib.util
import subprocess
import sys

import pytest
from click import testing

from servelab import cli
from servelab.cluster import directories


def invoke(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(cli.main, list(arguments), prog_name="servelab")


def test_help_lists_every_command() -> None:
    output = invoke("--help").output
    assert [name for name in cli.COMMANDS if f"  {name} " not in output] == []


def test_help_imports_no_command() -> None:
    script = (
        "import sys; from servelab import cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('servelab.c') and m.count('.') > 1])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_of_the_table_exists(name: str) -> None:
    module = cli.COMMANDS[name][0].partition(":")[0]
    assert importlib.util.find_spec(module) is not None
    assert invoke(name, "--help").exit_code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("upp",),
        ("up", "--time-scale", "0"),
        ("up", "--time-scale", "nan"),
        ("up", "--time-scale", "fast"),
        ("up", "--name", "../evil"),
        ("up", "--gateway-port", "70000"),
        ("restart", "etcd"),
        ("completion", "cmd"),
        ("emulator", "--time-scale", "nan"),
        ("emulator", "--kubelet-cert", __file__),
    ],
    ids=" ".join,
)
def test_bad_arguments_are_a_usage_error(arguments: tuple[str, ...]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Error: " in result.output


@pytest.mark.parametrize("command", ["status", "logs gateway", "restart gateway"])
def test_without_a_cluster_one_sentence_and_exit_code_1(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv(directories.STATE_VARIABLE, str(tmp_path))
    result = invoke(*command.split())
    assert result.exit_code == 1
    assert "no local cluster" in result.output


def test_down_without_a_cluster_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv(directories.STATE_VARIABLE, str(tmp_path))
    assert invoke("down").exit_code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_command(shell: str) -> None:
    assert "_SERVELAB_COMPLETE" in invoke("completion", shell).output
