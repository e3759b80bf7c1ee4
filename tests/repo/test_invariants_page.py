"""The page of the invariants names tests that exist, and forgets none of those made for them."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "invariants.md").read_text()
ROWS = [line for line in PAGE.splitlines() if re.match(r"\| \d+ \*? ?\| [A-Z]", line)]
NAMED = set(re.findall(r"`(\w+)`", "\n".join(ROWS)))


def defined(*folders: str) -> set[str]:
    """Names of all functions, and of what is assigned: a state machine's test case."""
    files = [path for each in folders for path in (ROOT / "tests" / each).rglob("*.py")]
    nodes = [node for path in files for node in ast.walk(ast.parse(path.read_text()))]
    functions = {n.name for n in nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    return functions | {
        target.id
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def test_there_are_twelve() -> None:
    assert [int(re.findall(r"\d+", row)[0]) for row in ROWS] == list(range(1, 13))


def test_the_starred_ones_are_held_on_a_real_api_server_too() -> None:
    real = {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in ROWS}
    assert [number for number, tests in real.items() if ("*" in number) != bool(tests)] == []


def test_every_test_that_it_names_exists() -> None:
    assert NAMED - defined("invariants", "scenario", "cluster") == set()


def test_no_test_of_an_invariant_is_left_out() -> None:
    made = {name for name in defined("invariants") if name.startswith("test_")}
    assert made - NAMED == {"test_the_story_has_something_to_disturb"}
