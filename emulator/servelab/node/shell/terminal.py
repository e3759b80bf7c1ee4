"""A terminal's line: what is typed is echoed, mended and handed on when it is complete (pure)."""

from dataclasses import dataclass

_ERASE = ("\x7f", "\b")
# As Linux's own line discipline.
MOST_CHARACTERS = 4095
INTERRUPT = "\x03"
_KILL, _END = "\x15", "\x04"


@dataclass(frozen=True, slots=True)
class Typed:
    """What bytes led to: ``echo`` goes back, ``lines`` are complete, ``ended`` is Ctrl-D.

    A line of None is one that Ctrl-C took back.
    """

    echo: str = ""
    lines: tuple[str | None, ...] = ()
    ended: bool = False


class Terminal:
    """The line being typed; escape sequences (arrows) are ignored."""

    def __init__(self) -> None:
        self._line = ""
        self._escape = ""
        self._after_return = False

    def type(self, text: str) -> Typed:
        """Take what came from the keyboard."""
        echo, lines, ended = "", list[str | None](), False
        for char in text:
            if self._in_escape(char):
                continue
            if char == "\n" and self._after_return:
                self._after_return = False
                continue
            self._after_return = char == "\r"
            if char in "\r\n":
                lines.append(self._line)
                echo, self._line = echo + "\r\n", ""
            elif char in _ERASE:
                echo += "\b \b" if self._line else ""
                self._line = self._line[:-1]
            elif char == _KILL:
                echo, self._line = echo + "\b \b" * len(self._line), ""
            elif char == INTERRUPT:
                lines.append(None)
                echo, self._line = echo + "^C\r\n", ""
            elif char == _END:
                ended = ended or not self._line
            elif (char.isprintable() or char == "\t") and len(self._line) < MOST_CHARACTERS:
                echo, self._line = echo + char, self._line + char
        return Typed(echo, tuple(lines), ended)

    def _in_escape(self, char: str) -> bool:
        if char == "\x1b":
            self._escape = char
            return True
        if not self._escape:
            return False
        if self._escape == "\x1b" and char in "[O":
            self._escape += char
        elif not (char.isdigit() or char == ";"):
            self._escape = ""
        return True


def newlines(text: str) -> str:
    """Text as a terminal shows it: a line feed alone does not return the carriage."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
