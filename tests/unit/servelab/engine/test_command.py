"""``servelab engine``: what it refuses, and that it serves."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click import testing

from modelserve.engines import arguments
from servelab.cli import engine as command
from servelab.cli import engine_help
from servelab.engine.alone import orders
from servelab.engine.alone.recipe import Recipe

Made = Callable[..., Recipe]
GOLDEN = Path(__file__).parents[3] / "golden" / "cli" / "servelab-engine-help.txt"

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def invoke(*arguments: str) -> testing.Result:
    return testing.CliRunner().invoke(command.engine, list(arguments))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "the model's name is missing"),
        (("--max-num-seqs", "32"), "the model's name is missing"),
        ((LLAMA, "--gpu", "potato"), "unknown GPU 'potato'"),
        (("no/such-model",), "unknown model 'no/such-model'"),
        ((LLAMA, "--gpu", "NVIDIA-L4", "--max-model-len=131072"), "lower --max-model-len"),
        ((LLAMA, "--time-scale", "-1"), "--time-scale"),
        ((LLAMA, "--admin-token-file", __file__), "--admin-token-file needs --admin-listen"),
        (("--file", __file__, LLAMA), "--file tells of all engines"),
        (("--", "vllm", "serve", LLAMA, "--config", "x"), "--config is only read before --"),
        (("--", "trtllm-serve", "no/such-model"), "unknown model 'no/such-model'"),
        (("--", "tritonserver", "--model-repository=/x"), "tritonserver serves no model that is"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...], sentence: str
) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, sentence in result.output) == (2, True), result.output


@pytest.mark.parametrize(
    ("arguments", "usage", "message", "hint"),
    [
        (
            (LLAMA, "--max-num-seqz", "4"),
            "usage: vllm [-h] [-v] {",
            "vllm: error: unrecognized arguments: --max-num-seqz 4",
            ["did you mean --max-num-seqs?"],
        ),
        (("--nope",), "usage: vllm [-h]", "vllm: error: unrecognized arguments: --nope", None),
        (
            (LLAMA, "--max-model-len", "abc"),
            "usage: vllm serve [model_tag] [options]",
            "vllm serve: error: argument --max-model-len: invalid human_readable_int_or_auto "
            "value: 'abc'",
            [],
        ),
    ],
)
def test_a_command_line_is_refused_as_vllms_parser_refuses_it(
    arguments: tuple[str, ...], usage: str, message: str, hint: list[str] | None
) -> None:
    result = invoke(*arguments)
    *before, first, last = result.output.splitlines()
    assert (result.exit_code, last, first.startswith(usage)) == (2, message, True)
    assert hint in (None, before)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--enable-auto-tool-choice", "TypeError: Error: --enable-auto-tool-choice requires"),
        (
            "--enable-auto-tool-choice --tool-call-parser nope",
            "KeyError: 'invalid tool call parser: nope (chose from { apertus,beam,",
        ),
        ("--reasoning-parser nope", "KeyError: \"Reasoning parser 'nope' not found. Available"),
    ],
)
def test_an_unknown_parser_ends_it_as_it_ends_vllm(flags: str, message: str) -> None:
    result = invoke(LLAMA, *flags.split())
    assert (result.exit_code, result.output.startswith(message)) == (1, True), result.output


def test_what_the_engine_itself_refuses_is_told_in_its_words_and_exit_code_1() -> None:
    result = invoke("llama-2-7b-hf", "--max-model-len=8192")
    assert result.exit_code == 1
    assert result.output.startswith("pydantic_core._pydantic_core.ValidationError: 1 validation")


def test_h_is_help() -> None:
    assert invoke("-h").output == invoke("--help").output


def test_the_help_is_the_golden_one() -> None:
    text = testing.CliRunner().invoke(command.engine, ["--help"], terminal_width=80).output
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_every_flag_in_the_help_is_one_of_vllms() -> None:
    table = arguments.load("vllm-0.33.0")
    shown = [word for flags in engine_help.SECTIONS.values() for word in " ".join(flags).split()]
    flags = {word.rstrip(",") for word in shown if word.startswith("-")} - {"--file"}
    assert [flag for flag in flags if table.find(flag) is None] == []


FILE = """\
model: llama-3.1-8b
max-num-seqs: 16
max-num-batched-tokens: 1024
max-model-len: 8k
gpu: a100
seed: 4
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """The recipe of a command line and environment, with FILE for its --config."""
    path = tmp_path / "config.yaml"
    path.write_text(FILE)

    def make(environment: dict[str, str], *words: str) -> Recipe:
        with monkeypatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(f"SERVELAB_ENGINE_{name}", value)
            context = command.engine.make_context("engine", ["--config", str(path), *words])
            (found,) = orders.recipes(command.order(context))
        return found

    return make


def test_flags_win_over_environment_over_file_over_defaults(made: Made) -> None:
    environment = {
        "MAX_NUM_SEQS": "24",
        "MAX_NUM_BATCHED_TOKENS": "2048",
        "SEED": "5",
        "GPU": "h100",
    }
    found = made(environment, "--max-num-seqs", "48", "--seed", "6")
    config = found.spec.config
    assert (config.max_sequences, found.spec.seed) == (48, 6)
    assert (config.max_batched_tokens, found.settings.gpu) == (2048, "h100")
    assert (config.max_model_tokens, found.settings.jitter) == (8000, 0.02)


def test_the_model_comes_from_flags_before_environment_before_file(made: Made) -> None:
    environment = {"MODEL": "qwen2.5-7b"}
    assert made({}).spec.served_name == "llama-3.1-8b"
    assert made(environment).spec.served_name == "qwen2.5-7b"
    assert made(environment, "mistral-7b").spec.served_name == "mistral-7b"
    words = ("--model", "mistral-7b")
    assert made(environment, *words).spec.served_name == "mistral-7b"


def test_the_address_of_a_service_is_no_port(made: Made) -> None:
    assert made({"PORT": "tcp://10.0.0.1:80"}).port == 8000


def test_a_taken_port_says_so_with_exit_code_1() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = invoke(LLAMA, "--max-model-len=8192", "--port", port)
    assert (result.exit_code, "choose another with --port" in result.output) == (1, True)


@contextlib.contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own."""
    script = "from servelab.cli.engine import engine; engine()"
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ready(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    told: dict[str, Any] = json.loads(process.stdout.readline())
    return told


def get(url: str, method: str = "GET", body: bytes | None = None) -> Any:
    request = urllib.request.Request(url, body, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def test_it_serves_until_it_is_told_to_stop() -> None:
    with running(LLAMA, "--max-model-len=8192", "--served-model-name=m", "--port=0") as process:
        told = ready(process)
        assert get(f"{told['url']}/models")["data"][0]["id"] == "m"
        assert "admin" not in told
        process.terminate()
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (("--", "tritonserver", "--model-repository=/models/llama-3.1-8b", "--http-port=0"), ""),
        (("--", "python3", "-m", "huggingfaceserver", "--model_id", LLAMA), "/openai/v1"),
    ],
    ids=["triton", "kserve"],
)
def test_the_url_is_where_openais_api_begins(words: tuple[str, ...], path: str) -> None:
    with running("--port=0", *words) as process:
        url = str(ready(process)["url"])
        assert url.partition("://")[2].partition("/")[2] == path.removeprefix("/")


ENGINES = f"""\
engines:
- {{model: {LLAMA}, served-model-name: llama, max-model-len: 8k, port: 0}}
- {{model: {LLAMA}, served-model-name: llama, max-model-len: 8k, port: 0, gpu: l4}}
- {{command: trtllm-serve {LLAMA} --max_seq_len 8192, port: 0, name: other}}
"""


def test_many_engines_share_a_process_and_an_admin_endpoint(tmp_path: Path) -> None:
    path = tmp_path / "engines.yaml"
    path.write_text(ENGINES)
    with running("--file", str(path), "--admin-listen", "127.0.0.1:0") as process:
        told = {each["name"]: each for each in (ready(process) for _ in range(3))}
        assert set(told) == {"llama", "llama-2", "other"}
        assert told["other"]["engine"] == "tensorrt-llm"
        get(f"{told['llama-2']['admin']}/queue/waiting", "PUT", b"7")
        shown = {name: get(f"{each['admin']}/queue")["shown"] for name, each in told.items()}
        assert [shown[name]["waiting"] for name in told] == [7 * (n == "llama-2") for n in told]
        process.terminate()
        assert process.wait() == 0


def test_two_engines_cannot_have_the_same_port(tmp_path: Path) -> None:
    path = tmp_path / "engines.yaml"
    path.write_text(ENGINES.replace("port: 0", "port: 8000"))
    result = invoke("--file", str(path))
    assert result.exit_code == 2
    assert "llama and llama-2 both want port 8000: give one another" in result.output


def test_a_cold_start_says_its_lines_and_serves_at_its_end() -> None:
    words = ("--port=0", "--start=cold", "--time-scale=5000", "--max-model-len=8k")
    with running(LLAMA, *words) as process:
        assert ready(process)["ready"]
        process.terminate()
        _, log = process.communicate()
    before, _, _ = log.partition("Application startup complete.")
    assert "Loading weights took" in before
    assert process.returncode == 0


def test_connections_are_refused_while_it_starts_and_a_signal_ends_it() -> None:
    # Bound here too: nobody else is given it, and Linux lets two share a port that none listens on.
    free = socket.socket()
    free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
    words = (f"--port={port}", "--start=cold", "--warm-up-seconds=86400", "--max-model-len=8k")
    with free, running(LLAMA, *words) as process:
        assert process.stderr is not None
        assert "[startup.py:38]" in process.stderr.readline()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        process.terminate()
        assert process.wait() == 0
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_an_exit_that_was_asked_for_is_the_processes() -> None:
    with running(LLAMA, "--port=0", "--max-model-len=8k", "--admin-listen=127.0.0.1:0") as process:
        get(f"{ready(process)['admin']}/faults/exit", "PUT", b'{"code": 137}')
        assert process.wait() == 137
