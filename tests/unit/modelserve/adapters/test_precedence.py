"""Precedence, in processes of their own: the system is asked for real."""

import os
import subprocess
import sys

import pytest

from modelserve.adapters import precedence

ASK = "from modelserve.adapters import precedence as p; import os; print(p.take(), os.nice(0))"
RETURN = f"{ASK}; p.give_back(); print(os.nice(0))"


def said(script: str) -> list[str]:
    order = [sys.executable, "-c", script]
    done = subprocess.run(order, capture_output=True, text=True, check=True, start_new_session=True)
    return done.stdout.split()


def test_who_may_not_take_precedence_goes_on_as_before() -> None:
    granted, niceness = said(ASK)
    expected = precedence.NICENESS if granted == "True" else os.nice(0)
    assert int(niceness) == expected


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser may for sure")
def test_the_superuser_has_precedence_and_a_child_gives_it_back() -> None:
    granted, taken, returned = said(RETURN)
    assert (granted, int(taken), int(returned)) == ("True", precedence.NICENESS, 0)
