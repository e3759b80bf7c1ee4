"""A line as it is typed."""

import pytest

from servelab.node.shell import terminal


@pytest.mark.parametrize(
    ("typed", "echo", "lines", "ended"),
    [
        ("ls\r", "ls\r\n", ("ls",), False),
        ("lx\x7fs\r", "lx\b \bs\r\n", ("ls",), False),
        ("a\r\nb\n", "a\r\nb\r\n", ("a", "b"), False),
        ("abc\x15d\r", "abc" + "\b \b" * 3 + "d\r\n", ("d",), False),
        ("abc\x03", "abc^C\r\n", (None,), False),
        ("a\x1b[A\x1b[1;5Cb\r", "ab\r\n", ("ab",), False),
        ("\x04", "", (), True),
        ("a\x04", "a", (), False),
        ("\x7f\r", "\r\n", ("",), False),
    ],
)
def test_keys_do_what_a_terminal_does(
    typed: str, echo: str, lines: tuple[str | None, ...], ended: bool
) -> None:
    keyboard = terminal.Terminal()
    found = [keyboard.type(char) for char in typed]
    assert "".join(each.echo for each in found) == echo
    assert tuple(line for each in found for line in each.lines) == lines
    assert any(each.ended for each in found) is ended


def test_a_terminal_returns_its_carriage() -> None:
    assert terminal.newlines("a\nb\r\n") == "a\r\nb\r\n"
