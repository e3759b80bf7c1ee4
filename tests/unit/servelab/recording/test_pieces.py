"""Where no kubelet can be started, a sentence says why."""

import os
import sys
from pathlib import Path

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


@pytest.mark.parametrize("place", ["cpu/kubepods/pod-1", "memory/kubepods/burstable/pod-2/main"])
def test_another_kubelet_with_pods_is_told(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "cgroup.procs").write_text("4711\n")
    with pytest.raises(errors.SetUpError, match="a kubelet runs pods on this machine already"):
        pieces.require_alone("kubepods", tmp_path)


def test_what_another_kubelet_has_left_is_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    (tmp_path / "kubepods" / "pod-1").mkdir(parents=True)
    (tmp_path / "kubepods" / "pod-1" / "cgroup.procs").touch()
    pieces.require_alone("kubepods", tmp_path)
