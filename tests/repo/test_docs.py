"""The documentation points to files that exist and names every command and flag."""

import re
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


@pytest.mark.parametrize("group", [modelserve, servelab], ids=["modelserve", "servelab"])
def test_the_command_reference_names_every_command_and_flag(group: click.Group) -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text()
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        section = text.partition(f" {name}")[2]
        flags = [o for p in _shown(command) for o in p.opts]
        assert [flag for flag in flags if flag not in section] == [], name


def _shown(command: click.Command) -> list[click.Option]:
    return [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
