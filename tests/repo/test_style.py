"""What every module keeps to, so that each can be read in one go."""

import ast
import functools
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted([*ROOT.glob("operator/**/*.py"), *ROOT.glob("emulator/**/*.py")])
TESTS = sorted(ROOT.glob("tests/**/*.py"))
MOST_LINES, MOST, MOST_OF_A_TEST, MOST_OF_A_DOCSTRING = 400, 60, 30, 10
# Names that say nothing of what is inside.
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc", "manager", "managers", "base"}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@dataclass(frozen=True)
class Facts:
    """Of one module, in lines; functions by name."""

    lines: int
    prose: int
    functions: tuple[tuple[str, int], ...]


@functools.cache
def facts(path: Path) -> Facts:
    text = path.read_text()
    tree = ast.parse(text)
    told = (ast.get_docstring(tree) or "").splitlines()
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    found = [each for each in ast.walk(tree) if isinstance(each, kinds)]
    lengths = tuple((f.name, (f.end_lineno or 0) - f.lineno + 1) for f in found)
    return Facts(len(text.splitlines()), sum(map(is_prose, told)), lengths)


def is_prose(line: str) -> bool:
    """Whether it is no line of a table, a list or a drawing."""
    return not line.startswith(("|", "* ", "  ", "├", "│", "└"))


def test_no_module_is_longer_than_four_hundred_lines() -> None:
    lines = {name(path): facts(path).lines for path in [*SOURCES, *TESTS]}
    assert {path: n for path, n in lines.items() if n > MOST_LINES} == {}


def test_no_function_is_longer_than_sixty_lines() -> None:
    found = {name(path): facts(path).functions for path in SOURCES}
    long = [(path, f) for path, all_of_it in found.items() for f, n in all_of_it if n > MOST]
    assert long == []


def test_a_test_fits_half_a_screen() -> None:
    found = [each for path in TESTS for each in facts(path).functions]
    assert [f for f, n in found if f.startswith("test_") and n > MOST_OF_A_TEST] == []


def test_every_module_says_in_one_to_ten_lines_what_it_is() -> None:
    lines = {name(path): facts(path).prose for path in SOURCES}
    assert {path: n for path, n in lines.items() if not 1 <= n <= MOST_OF_A_DOCSTRING} == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [name(path) for path in SOURCES if VAGUE & {path.stem, path.parent.name}] == []


@pytest.mark.parametrize("folder", ["operator", "emulator", "tests", "docs", "examples", "charts"])
def test_nothing_names_a_place_on_somebodys_machine(folder: str) -> None:
    kinds = (".py", ".md", ".yaml", ".toml")
    files = [path for path in (ROOT / folder).rglob("*") if path.suffix in kinds]
    homes = ("/" + "work/", "/" + "root/", "/home/" + "user")
    found = [name(path) for path in files if any(home in path.read_text() for home in homes)]
    assert found == []
