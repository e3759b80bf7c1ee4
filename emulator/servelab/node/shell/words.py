"""A command line as a shell reads it: quotes, variables, ``;``, ``&&``, ``||``, ``|``, no files."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from modelserve import errors

_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*|\?|\$))")
_OPERATORS = ("&&", "||", ";", "|", "\n")
# Output can be thrown away or go where the other goes; there are no files to write.
_REDIRECTION = re.compile(r"([12&]?)>>?[ \t]*(/dev/null|&[12])(?![^ \t\n;|&>])")
# What a shell would do with these is more than this one can.
_UNKNOWN = ("`", "$(", "<", ">", "&")


class Unreadable(errors.InputError):
    """A line that this shell cannot read."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where output 1 or 2 goes instead: ``1``, ``2``, or nowhere."""

    output: str
    target: str


@dataclass(slots=True)
class Word:
    """Pieces of text, and of names of variables."""

    pieces: list[tuple[str, bool]] = field(default_factory=list)
    quoted: bool = False

    def add(self, text: str, *, variable: bool = False) -> None:
        self.pieces.append((text, variable))

    def expand(self, variables: Mapping[str, str]) -> str:
        """The word with what the variables hold now."""
        return "".join(variables.get(t, "") if named else t for t, named in self.pieces)

    @property
    def plain(self) -> str:
        """Its text as it was typed."""
        return "".join(text for text, _ in self.pieces)


@dataclass(slots=True)
class Step:
    """One command, and what stands before it: nothing, or an operator."""

    operator: str
    words: list[Word] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)

    def expand(self, variables: Mapping[str, str]) -> list[str]:
        """Its words. An unquoted variable that holds nothing leaves none."""
        found = ((word, word.expand(variables)) for word in self.words)
        return [text for word, text in found if text or word.quoted]


def steps(line: str) -> list[Step]:
    """The commands of a line, in order. Raises Unreadable."""
    found, step = list[Step](), Step("")
    for token in _tokens(line):
        if isinstance(token, Word):
            step.words.append(token)
        elif isinstance(token, Redirection):
            step.redirections.append(token)
        elif step.words:
            found.append(step)
            step = Step(";" if token == "\n" else token)
        elif token not in ("\n", ";"):
            raise Unreadable(f'Syntax error: "{token}" unexpected')
    if step.words:
        found.append(step)
    elif step.operator in ("&&", "||", "|"):
        raise Unreadable("Syntax error: end of file unexpected")
    return found


def _tokens(line: str) -> Iterator[Word | Redirection | str]:
    at = 0
    while at < len(line):
        redirection = _REDIRECTION.match(line, at)
        operator = next((each for each in _OPERATORS if line.startswith(each, at)), None)
        if line[at] in " \t":
            at += 1
        elif redirection is not None:
            target = "" if redirection[2] == "/dev/null" else redirection[2][1:]
            for output in "12" if redirection[1] == "&" else redirection[1] or "1":
                yield Redirection(output, target)
            at = redirection.end()
        elif operator is not None:
            yield operator
            at += len(operator)
        elif line[at] == "#":
            end = line.find("\n", at)
            at = len(line) if end < 0 else end
        else:
            word = Word()
            while at < len(line) and line[at] not in " \t\n;|&":
                at = _piece(line, at, word)
            if not word.pieces and not word.quoted:
                _refuse(line, at)
            yield word


def _piece(line: str, at: int, word: Word) -> int:
    """Add the next piece of a word; where to go on."""
    char = line[at]
    if char == "'":
        end = line.find("'", at + 1)
        if end < 0:
            raise Unreadable("Syntax error: Unterminated quoted string")
        word.quoted = True
        word.add(line[at + 1 : end])
        return end + 1
    if char == '"':
        return _double_quoted(line, at + 1, word)
    if char == "\\" and at + 1 < len(line):
        word.quoted = True
        word.add(line[at + 1])
        return at + 2
    if match := _VARIABLE.match(line, at):
        word.add(match[1] or match[2], variable=True)
        return match.end()
    _refuse(line, at)
    word.add(char)
    return at + 1


def _double_quoted(line: str, at: int, word: Word) -> int:
    word.quoted = True
    while at < len(line) and line[at] != '"':
        if match := _VARIABLE.match(line, at):
            word.add(match[1] or match[2], variable=True)
            at = match.end()
        elif line[at] == "\\" and line[at + 1 : at + 2] in ("\\", '"', "$", "`"):
            word.add(line[at + 1])
            at += 2
        else:
            if line.startswith(("`", "$("), at):
                _refuse(line, at)
            word.add(line[at])
            at += 1
    if at >= len(line):
        raise Unreadable("Syntax error: Unterminated quoted string")
    return at + 1


def _refuse(line: str, at: int) -> None:
    found = next((each for each in _UNKNOWN if line.startswith(each, at)), None)
    if found is not None:
        raise Unreadable(f'Syntax error: "{found}" is not understood by the emulated shell')
