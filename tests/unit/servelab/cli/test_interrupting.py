"""Ctrl-C, in a process of its own: what each of the long commands leaves behind."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(60)


@contextlib.contextmanager
def started(*words: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "servelab", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code and its log, once Ctrl-C has ended it."""
    process.send_signal(signal.SIGINT)
    _, log = process.communicate()
    return process.returncode, log


@pytest.mark.parametrize(
    "words",
    [
        ("validate", "--points"),
        ("simulate",),
        ("compare",),
        ("sweep",),
        ("advise", "azure-code", "--ttft-p95=2s", "--scenario"),
    ],
    ids=lambda words: words[0],
)
def test_a_command_at_its_work_ends_with_130_and_no_traceback(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    pipe = tmp_path / "input.yaml"
    os.mkfifo(pipe)
    with started(*words, str(pipe)) as process, pipe.open("w"):  # once it reads
        assert interrupted(process) == (130, "interrupted\n")


def test_a_bench_that_measures_ends_with_130_and_no_traceback() -> None:
    with started("bench", "core") as process:
        assert process.stderr is not None
        assert process.stderr.readline()
        code, log = interrupted(process)
    assert (code, "Traceback" in log, log.endswith("interrupted\n")) == (130, False, True)


def test_an_engine_that_serves_ends_with_130_and_no_traceback() -> None:
    with started("engine", "llama-3.1-8b", "--max-model-len=8k", "--port=0") as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        code, log = interrupted(process)
    assert (code, "Traceback" in log) == (130, False)
