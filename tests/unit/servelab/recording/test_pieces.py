"""Where no kubelet can be started, a sentence says why."""

import os
import sys

import pytest

from modelserve import errors
from servelab.recording import pieces


def test_another_system_than_linux_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(errors.SetUpError, match="Linux only"):
        pieces.require_machine()


def test_a_user_who_is_not_root_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(errors.SetUpError, match="needs root"):
        pieces.require_machine()
