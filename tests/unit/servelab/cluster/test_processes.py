"""Children, with real small processes instead of Kubernetes."""

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelserve import errors
from servelab.cluster import processes

READY = (
    "import json, time; print(json.dumps({'ready': True, 'port': 7}), flush=True); time.sleep(60)"
)
DYING = "print('first'); print('the disk is on fire'); raise SystemExit(3)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('{\"ready\": true}', flush=True); time.sleep(60)"
)


@pytest.fixture
def family(tmp_path: Path) -> Iterator[processes.Family]:
    family = processes.Family(tmp_path)
    yield family
    family.close()


def python(name: str, script: str) -> processes.Command:
    return processes.Command(name, [sys.executable, "-I", "-S", "-c", script], {})


def test_the_ready_line_of_a_child_is_read(family: processes.Family) -> None:
    child = family.start(python("one", READY))
    child.wait_until(child.is_ready, 20)
    assert child.ready_line() == {"ready": True, "port": 7}


def test_a_child_that_dies_is_reported_with_the_end_of_its_log(family: processes.Family) -> None:
    child = family.start(python("one", DYING))
    with pytest.raises(errors.SetUpError, match=r"(?s)one ended with exit code 3.*on fire"):
        child.wait_until(child.is_ready, 20)


def test_a_child_that_dies_without_a_word_is_reported_so(family: processes.Family) -> None:
    child = family.start(python("one", "raise SystemExit(4)"))
    with pytest.raises(errors.SetUpError, match=r"one ended with exit code 4 and wrote no log$"):
        child.wait_until(child.is_ready, 20)


def test_deaths_are_reported_once(family: processes.Family) -> None:
    child = family.start(python("one", DYING))
    child.end(time.monotonic() + 20)
    assert [death.exit_code for death in family.deaths()] == [3]
    assert family.deaths() == []


def test_a_child_that_is_late_is_reported(family: processes.Family) -> None:
    child = family.start(python("one", READY))
    with pytest.raises(errors.SetUpError, match="not ready after 0 s"):
        child.wait_until(lambda: False, 0)


def test_a_log_goes_on_after_a_restart_and_only_the_new_run_counts(
    family: processes.Family,
) -> None:
    first = family.start(python("one", READY))
    first.wait_until(first.is_ready, 20)
    family.stop(["one"], 5)
    second = family.start(python("one", "import time; time.sleep(60)"))
    assert second.ready_line() is None


def test_a_child_that_ignores_the_signal_is_killed(family: processes.Family) -> None:
    child = family.start(python("one", STUBBORN))
    child.wait_until(child.is_ready, 20)
    family.stop(["one"], 0.05)
    assert processes.started_at(child.pid) is None


def test_a_stopped_child_is_no_death(family: processes.Family) -> None:
    family.start(python("one", READY))
    family.stop(["one"], 0, signal.SIGKILL)
    assert family.deaths() == []
    assert family.names() == ()


def test_a_program_that_is_not_there_is_a_sentence(family: processes.Family) -> None:
    with pytest.raises(errors.SetUpError, match="etcd cannot be started from /no/etcd"):
        family.start(processes.Command("etcd", ["/no/etcd"], {}))


def test_an_unknown_name_lists_the_known_ones(family: processes.Family) -> None:
    family.start(python("one", READY))
    with pytest.raises(errors.InputError, match="there are: one"):
        family.child("two")


def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import pathlib, sys, time; from servelab.cluster import processes\n"
        "logs = pathlib.Path(sys.argv[1]); family = processes.Family(logs)\n"
        "family.guard.remove_with_us(logs / 'gone'); (logs / 'gone').mkdir()\n"
        f"nap = [sys.executable, '-I', '-S', '-c', {STUBBORN!r}]\n"
        "children = [family.start(processes.Command(n, nap, {})) for n in 'ab']\n"
        "pids = [family.guard.pid, *(child.pid for child in children)]\n"
        "print('{\"ready\": true}', pids, flush=True); time.sleep(60)\n"
    )
    outer = processes.Family(tmp_path)
    command = [sys.executable, "-P", "-c", script, str(tmp_path)]
    parent = outer.start(processes.Command("parent", command, {}))
    parent.wait_until(lambda: "ready" in parent.log_end(), 20)
    pids = [int(word) for word in parent.log_end().partition("[")[2].rstrip("]").split(", ")]
    parent.signal(signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            ended = os.pidfd_open(pid)
            select.select([ended], [], [])  # the test's own time limit ends the wait
            os.close(ended)
    assert [processes.started_at(pid) for pid in pids] == [None, None, None]
    assert not (tmp_path / "gone").exists()
    outer.close()
