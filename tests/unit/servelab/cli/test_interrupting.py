"""Ctrl-C, in a process of its own: what each of the long commands leaves behind."""

import contextlib
import os
import signal
import subprocess
import sys
import time
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


def read_by(process: subprocess.Popen[str], pipe: Path) -> int:
    """The end to write to, once it reads the pipe; fails with its log if it ends before."""
    while True:
        # Without a reader, opening it without waiting is an error.
        with contextlib.suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code and its log, once Ctrl-C has ended it."""
    process.send_signal(signal.SIGINT)
    return ended(process)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
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
    with started(*words, str(pipe)) as process:
        end = read_by(process, pipe)
        process.send_signal(signal.SIGINT)
        # Python heeds a signal that comes just before a read after it: let it end.
        os.close(end)
        code, log = ended(process)
    # On a slow machine a line of progress may have come before.
    assert (code, "Traceback" in log, log.splitlines()[-1]) == (130, False, "interrupted")


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


def test_a_cluster_that_starts_ends_with_130_and_leaves_nothing(tmp_path: Path) -> None:
    binaries, data = tmp_path / "bin", tmp_path / "data"
    binaries.mkdir()
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        (binaries / name).write_text("#!/bin/sh\nexec sleep 60\n")
        (binaries / name).chmod(0o755)
    with started("up", f"--kubernetes-bin={binaries}", f"--data-dir={data}") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("starting etcd")
        code, log = interrupted(process)
    assert (code, "Traceback" in log) == (130, False)
    assert "interrupted before the cluster was ready" in log
    assert not (data / "run").exists()
