"""The command line itself: quick help, clear refusals."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from click import testing

from modelserve import cli as modelserve_cli
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


DATA = "status catalog explain validate simulate compare bench demo " + " ".join(
    name for name in cli.COMMANDS if name.endswith("-check")
)


@pytest.mark.parametrize("name", DATA.split())
def test_every_command_that_prints_data_prints_json_under_both_names(name: str) -> None:
    text = invoke(name, "--help").output
    assert "-o" in text
    assert "[table|json]" in text or "[text|json]" in text
    assert "The same as -o json." in text


def test_both_names_of_json_print_the_same() -> None:
    short, long = invoke("catalog", "gpus", "-o", "json"), invoke("catalog", "gpus", "--json")
    assert short.output == long.output
    assert json.loads(short.output)


@pytest.mark.parametrize("program", ["servelab", "modelserve"])
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_asks_the_program(program: str, shell: str) -> None:
    main = cli.main if program == "servelab" else modelserve_cli.main
    result = testing.CliRunner().invoke(main, ["completion", shell], prog_name=program)
    assert f"_{program.upper()}_COMPLETE={shell}_complete" in result.output


def test_what_the_script_asks_is_answered_with_commands() -> None:
    asked = {"_SERVELAB_COMPLETE": "bash_complete", "COMP_WORDS": "servelab ex", "COMP_CWORD": "1"}
    words = [
        sys.executable,
        "-P",
        "-c",
        "from servelab.cli import main; main(prog_name='servelab')",
    ]
    done = subprocess.run(words, env={**os.environ, **asked}, capture_output=True, text=True)
    assert done.stdout == "plain,explain\n"
