"""Which process has ended, as far as this machine can tell."""

import os
import subprocess
import sys

import pytest

from modelserve.adapters import instances

TELL = "from modelserve.adapters import instances; print(instances.this_process())"


def test_we_run() -> None:
    assert not instances.has_ended(instances.this_process())


def test_a_process_that_ran_here_is_known_to_have_ended() -> None:
    done = subprocess.run([sys.executable, "-c", TELL], capture_output=True, text=True, check=True)
    assert instances.has_ended(done.stdout.strip())


def test_one_that_had_our_process_id_before_us_has_ended() -> None:
    _, pid, where = instances.this_process().rsplit("_", 2)
    assert pid == str(os.getpid())
    assert instances.has_ended(f"before_{pid}_{where}")


@pytest.mark.parametrize("identity", ["", "a", "host_1_0badcafe", "host_99999999_", "x_y_z"])
def test_of_others_nobody_here_can_tell(identity: str) -> None:
    assert not instances.has_ended(identity)
