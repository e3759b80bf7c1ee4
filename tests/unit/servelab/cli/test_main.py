"""The command line itself: quick help, clear refusals."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click import testing

from modelserve import cli as modelserve_cli
from servelab import cli
from servelab.cluster import directories, record


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
    assert json.loads(short.stdout)


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


@pytest.mark.parametrize(
    ("typed", "told"),
    [("simulat", "did you mean simulate"), ("xyzzy", "No such command 'xyzzy'.")],
)
def test_a_command_that_there_is_not_is_answered_with_the_nearest(typed: str, told: str) -> None:
    result = invoke(typed)
    assert result.exit_code == 2
    assert told in result.output


def test_what_the_locale_cannot_print_is_no_error(tmp_path: Path) -> None:
    scenario = tmp_path / "mine.yaml"
    pool, traffic = "{gpu: h100}", "[{steady: {perSecond: 1, seconds: 2}}]"
    spec = "{model: {name: llama-3.1-8b}, gpu: {product: NVIDIA-H100-80GB-HBM3}}"
    scenario.write_text(f"pools: [{pool}]\nmodels: [{{spec: {spec}, traffic: {traffic}}}]\n")
    runner = testing.CliRunner(charset="ascii")
    result = runner.invoke(cli.main, ["simulate", str(scenario)], prog_name="servelab")
    assert (result.exit_code, result.exception) == (0, None)
    assert "0 ? 1  Activation" in result.output


def test_no_command_of_a_group_is_described_by_half_a_sentence() -> None:
    described = invoke("fault", "--help").output.partition("Commands:")[2]
    assert described.count(".\n") == 3


def test_status_names_a_process_that_has_ended_and_how_to_start_it_again(tmp_path: Path) -> None:
    ended = record.Process(pid=1, started_at="long ago")
    ours = record.Process.of(os.getpid())
    urls = {"api": "https://127.0.0.1:1", "gateway": "http://127.0.0.1:2"}
    record.Record(
        name="default",
        supervisor=ours,
        children={"etcd": ours, "emulator": ended},
        kubeconfig="kubeconfig",
        urls=urls,
        time_scale=1.0,
        kubernetes="v1.37.2",
        keep=True,
        ready=True,
    ).write(tmp_path)
    result = invoke("status", "--data-dir", str(tmp_path))
    assert result.exit_code == 0
    assert (
        "emulator has ended and is started again after a pause; why: `servelab logs emulator"
        in result.output
    )
    assert "etcd has ended" not in result.output
    assert "runs without emulator" in result.output
    told = json.loads(invoke("status", "--data-dir", str(tmp_path), "-o", "json").stdout)
    assert (told["running"], told["ready"]) == (True, False)


def test_a_value_from_the_environment_is_told_by_its_variable() -> None:
    found = testing.CliRunner().invoke(cli.main, ["engine"], env={"SERVELAB_ENGINE_PORT": "abc"})
    assert found.exit_code == 2
    assert "Invalid value for environment variable SERVELAB_ENGINE_PORT: 'abc'" in found.stderr
    given = testing.CliRunner().invoke(cli.main, ["engine", "--port=abc"])
    assert "Invalid value for '--port': 'abc'" in given.stderr
