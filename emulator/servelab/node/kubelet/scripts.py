"""What a container does whose command says it all: a few plain shell commands, one after the other.

No command is run. A command that is not understood to the end says nothing.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

SHELLS = ("sh", "ash", "bash", "dash")
# What reads a program from its input if it is given none. Ruby's alone handles SIGTERM.
_READERS = (*SHELLS, "python", "python2", "python3", "node", "irb")
_DEBUGGER = ("perl", "-de0")
_HANDLES_TERM = "irb"
MESSAGE_FILE = "/dev/termination-log"
_BETWEEN = re.compile(r"(;|&&|\n)(?:\s*\n)*")
# Anything but words between separators is a language of its own.
_STRANGE = re.compile(r"[`$(){}|<>&*?\[\]#\\~!=]|\b(?:while|for|if|until|case|do|then|trap|exec)\b")
_REDIRECTED = re.compile(r"\s*>\s*(/dev/stderr|/dev/stdout|&2|&1|/dev/termination-log)\s*$")


@dataclass(slots=True)
class Script:
    """What it does: seconds until its end, exit code, lines of its log, and its last words."""

    seconds: float = 0.0
    exit_code: int = 0
    log: list[tuple[float, str]] = field(default_factory=list)
    message: str = ""


def read(command: Sequence[str], message_path: str = MESSAGE_FILE) -> Script | None:
    """What the command does, if it is understood; else None."""
    if not command:
        return None
    program = PurePosixPath(command[0]).name
    if program not in SHELLS:
        return _run([("", shlex.join([program, *command[1:]]), "")], message_path)
    if len(command) != 3 or command[1] not in ("-c", "-ec", "-exc"):
        return None
    parts = ["", *_BETWEEN.split(command[2]), ""]
    statements = zip(parts[:-1:2], parts[1::2], parts[2::2], strict=True)
    return _run(statements, message_path, stops="e" in command[1])


def reads_input(command: Sequence[str]) -> bool:
    """Whether it is a shell or an interpreter, called without anything to run."""
    if tuple(command) == _DEBUGGER:
        return True
    return len(command) == 1 and PurePosixPath(command[0]).name in _READERS


def waits_without_handler(command: Sequence[str]) -> bool:
    """Whether it is one that has no handler for SIGTERM while it waits for its input."""
    return reads_input(command) and PurePosixPath(command[0]).name != _HANDLES_TERM


def _run(
    statements: Iterable[tuple[str, str, str]], message_path: str, *, stops: bool = False
) -> Script | None:
    """Do each of (what is before it, itself, what is behind); ``stops``: a failure ends all."""
    found = Script()
    for before, statement, behind in statements:
        text = statement.strip()
        if not text:
            continue
        target = _REDIRECTED.search(text)
        plain = _REDIRECTED.sub("", text) if target else text
        try:
            words = shlex.split(plain)
        except ValueError:
            return None
        if _STRANGE.search(re.sub(r"'[^']*'", "", plain)) or not words:
            return None
        if before == "&&" and found.exit_code:
            continue
        if not _step(found, words, target[1] if target else "", message_path):
            return None
        if words[0] == "exit" or (stops and found.exit_code and behind != "&&"):
            break
    return found


def _step(found: Script, words: Sequence[str], target: str, message_path: str) -> bool:
    """Do one command; returns whether it is known."""
    name, rest = PurePosixPath(words[0]).name, words[1:]
    last_code, found.exit_code = found.exit_code, 0
    match name:
        case "true" | ":":
            pass
        case "false":
            found.exit_code = 1
        case "exit" if len(rest) <= 1 and all(word.isdecimal() for word in rest):
            found.exit_code = int(rest[0]) % 256 if rest else last_code
        case "sleep" if len(rest) == 1 and re.fullmatch(r"\d+(?:\.\d+)?s?", rest[0]):
            found.seconds += float(rest[0].rstrip("s"))
        case "echo":
            text = " ".join(rest)
            if target == message_path:
                found.message = f"{text}\n"
            else:
                found.log.append((found.seconds, text))
        case _:
            return False
    return True
