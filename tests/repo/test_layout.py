"""Guards the folder called ``operator``: it must never take the standard library module's place."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = "import operator; print(operator.__file__)"


@pytest.mark.parametrize("folder", [".", "operator", "emulator", "tests"])
@pytest.mark.parametrize("path", ["", "."], ids=["plain", "PYTHONPATH=."])
def test_import_operator_finds_the_standard_library(folder: str, path: str) -> None:
    environment = {"PYTHONPATH": path} if path else {}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT / folder,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ROOT / "operator" not in Path(done.stdout.strip()).parents


@pytest.mark.parametrize("folder", ["operator", "emulator"])
def test_the_two_roots_hold_folders_only(folder: str) -> None:
    assert [path.name for path in (ROOT / folder).iterdir() if path.suffix == ".py"] == []


def test_tests_are_no_packages() -> None:
    assert list((ROOT / "tests").rglob("__init__.py")) == []


def test_no_module_is_called_utils_or_the_like() -> None:
    vague = {"utils", "util", "helpers", "common", "manager", "misc"}
    modules = [p for root in ("operator", "emulator") for p in (ROOT / root).rglob("*.py")]
    assert [str(path) for path in modules if path.stem in vague] == []


def test_no_module_is_longer_than_400_lines() -> None:
    modules = [p for root in ("operator", "emulator") for p in (ROOT / root).rglob("*.py")]
    assert [str(p) for p in modules if len(p.read_text().splitlines()) > 400] == []


def test_every_make_target_is_phony() -> None:
    lines = (ROOT / "Makefile").read_text().splitlines()
    phony = next(line for line in lines if line.startswith(".PHONY:")).split()[1:]
    targets = [line.partition(":")[0] for line in lines if ":" in line and line[0].islower()]
    assert sorted(targets) == sorted(phony)


def test_no_file_names_a_directory_of_somebodys_machine() -> None:
    roots = ("operator", "emulator", "charts", "crds", "docs", "examples", "tests")
    files = [path for root in roots for path in (ROOT / root).rglob("*") if path.is_file()]
    texts = [path for path in files if path.suffix in (".py", ".md", ".yaml", ".go", ".mod")]
    home = re.compile("(?<![a-z0-9])/(home|root|Users)/[a-z]")
    assert [str(path) for path in texts if home.search(path.read_text())] == []
