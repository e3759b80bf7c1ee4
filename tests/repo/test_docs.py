"""The documentation points to files that exist and names every command and flag."""

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from modelserve.cli import main as modelserve
from servelab.cli import main as servelab

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_to_a_file(page: Path) -> None:
    targets = LINK.findall(CODE.sub("", page.read_text()))
    assert [t for t in targets if not (page.parent / t).exists()] == []


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")


COMMANDS = dict([*_commands(modelserve, "modelserve"), *_commands(servelab, "servelab")])
# Its flags are those of `vllm serve`; the page names the ones that act.
BY_HAND = "servelab engine"


def _section(path: str) -> str:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    for section in text.split("\n### ")[1:]:
        heading = section.partition("\n")[0]
        if re.split(r" (?=[A-Z[{])", heading)[0] == path:
            return section
    raise AssertionError(f"no section for {path}")


@pytest.mark.parametrize("path", COMMANDS)
def test_the_command_reference_names_every_flag_of_a_command(path: str) -> None:
    section = _section(path)
    flags = [o for p in _shown(COMMANDS[path]) for o in p.opts]
    assert [flag for flag in flags if flag not in section] == []


@pytest.mark.parametrize("path", COMMANDS.keys() - {BY_HAND})
def test_the_command_reference_names_no_flag_that_a_command_lacks(path: str) -> None:
    known = {o for p in COMMANDS[path].params for o in (*p.opts, *p.secondary_opts)}
    rows = re.findall(r"^\| (.*?) \|", _section(path), re.M)
    named = [flag for row in rows for flag in re.findall(r"(?<!\w)--?[a-z][-a-z0-9]*", row)]
    assert [flag for flag in named if flag not in known] == []


def _shown(command: click.Command) -> list[click.Option]:
    return [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
