"""``servelab engine``: what it refuses, and that it serves."""

import json
import socket
import subprocess
import sys
import urllib.request

import pytest
from click import testing

from servelab.cli import engine as command

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
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    arguments: tuple[str, ...], sentence: str
) -> None:
    result = invoke(*arguments)
    assert (result.exit_code, sentence in result.output) == (2, True), result.output


def test_a_taken_port_says_so_with_exit_code_1() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        result = invoke(LLAMA, "--max-model-len=8192", "--port", port)
    assert (result.exit_code, "choose another with --port" in result.output) == (1, True)


def test_it_serves_until_it_is_told_to_stop() -> None:
    script = "from servelab.cli.engine import engine; engine()"
    words = [LLAMA, "--max-model-len=8192", "--served-model-name=m", "--port=0"]
    with subprocess.Popen(
        [sys.executable, "-P", "-c", script, *words], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        with urllib.request.urlopen(f"{ready['url']}/models") as response:
            assert json.load(response)["data"][0]["id"] == "m"
        process.terminate()
        assert process.wait() == 0
