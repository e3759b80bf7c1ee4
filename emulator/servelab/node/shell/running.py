"""Runs a command in a container: a program by its words, or lines for a shell."""

import dataclasses
from collections.abc import Sequence

from modelserve import errors
from servelab.node.shell import programs, words
from servelab.node.shell.inside import Inside, Result

# What a shell says and ends with where there is no such program.
NOT_FOUND = 127
SYNTAX = 2
# How often ``nvidia-smi -l`` looks if it is not told.
LOOP_S = 5


class NotStarted(errors.InputError):
    """The runtime could not start it; the text is runc's."""


def check(inside: Inside, command: Sequence[str]) -> str:
    """The program that a command starts. Raises NotStarted if there is none."""
    name = programs.name_of(inside, command[0]) if command and command[0] else ""
    if not name:
        raise NotStarted(_refusal(inside, command[0] if command else ""))
    return name


def run(inside: Inside, command: Sequence[str], text: str = "") -> Result:
    """Run a program as a runtime does. Raises NotStarted if there is none of that name."""
    return _program(inside, check(inside, command), command, text)


def repeated(command: Sequence[str]) -> tuple[float | None, Sequence[str]]:
    """Seconds after which a command begins again (``nvidia-smi -l 2``), and what it does once."""
    if command[0].rpartition("/")[2] != "nvidia-smi":
        return None, command
    rest: list[str] = []
    every_s: float | None = None
    for at, word in enumerate(command):
        name, _, value = word.partition("=")
        if name in ("-l", "--loop", "-lms", "--loop-ms"):
            following = command[at + 1] if at + 1 < len(command) else ""
            number = value or (following if following.isdecimal() else "")
            every_s = float(number or LOOP_S) / (1000 if name.endswith("ms") else 1)
        elif not (word.isdecimal() and at and command[at - 1] in ("-l", "-lms")):
            rest.append(word)
    return every_s, rest


def reads_lines(command: Sequence[str]) -> bool:
    """Whether a shell called so reads its commands from its input."""
    return all(word.startswith("-") and "c" not in word for word in command[1:])


def reads_input(command: Sequence[str]) -> bool:
    """Whether a program called so reads its input to the end."""
    name = command[0].rpartition("/")[2]
    names = [word for word in command[1:] if not word.startswith("-")]
    if name in programs.SHELLS:
        return reads_lines(command)
    return name in programs.FILTERS and len(names) <= programs.FILTERS[name]


def script(inside: Inside, line: str, text: str = "", shell: str = "sh") -> Result:
    """Run a line, or several, as ``sh -c`` does."""
    return Shell(inside, shell).run(line, text)


class Shell:
    """A shell with its variables. ``ended`` once it was told to exit."""

    def __init__(self, inside: Inside, name: str = "sh") -> None:
        self._inside = inside
        self._name = name
        self._variables = {**inside.env, "?": "0", "$": "1"}
        self.ended = False
        self.code = 0

    @property
    def prompt(self) -> str:
        """What a root's shell asks with."""
        return f"root@{self._inside.hostname}:/# " if self._name == "bash" else "# "

    def see(self, inside: Inside) -> None:
        """Things have changed since."""
        self._inside = dataclasses.replace(inside, env={**inside.env, **self._exported()})

    def run(self, line: str, text: str = "") -> Result:
        """Run a line; its code is the last command's."""
        try:
            steps = words.steps(line)
        except words.Unreadable as error:
            self.code = SYNTAX
            return Result(err=f"{self._name}: 1: {error}\n", code=SYNTAX)
        out, err, piped, pause_s = "", "", text, 0.0
        for number, step in enumerate(steps):
            if self.ended:
                break
            if (step.operator == "&&" and self.code) or (step.operator == "||" and not self.code):
                continue
            given = piped if step.operator == "|" or not number else ""
            found = _redirected(self._step(step.expand(self._variables), given), step)
            self.code, err, piped = found.code, err + found.err, found.out
            pause_s += found.pause_s
            self._variables["?"] = str(self.code)
            if number + 1 == len(steps) or steps[number + 1].operator != "|":
                out += found.out
        return Result(out, err, self.code, pause_s)

    def _step(self, step: Sequence[str], text: str) -> Result:
        while step and _assignment(step[0]):
            name, _, value = step[0].partition("=")
            self._variables[name], step = value, step[1:]
        if not step:
            return Result()
        match step[0]:
            case "exit":
                self.ended = True
                last = step[1] if len(step) > 1 else ""
                return Result(code=int(last) & 255 if last.isdecimal() else self.code)
            case "export":
                pairs = (word.partition("=") for word in step[1:] if "=" in word)
                self._variables |= {name: value for name, _, value in pairs}
                self._inside = dataclasses.replace(
                    self._inside, env={**self._inside.env, **self._exported()}
                )
                return Result()
            case "cd" | "set" | ":":
                return Result()
        name = programs.name_of(self._inside, step[0])
        if not name:
            return Result(err=f"{self._name}: 1: {step[0]}: not found\n", code=NOT_FOUND)
        return _program(self._inside, name, step, text)

    def _exported(self) -> dict[str, str]:
        return {name: value for name, value in self._variables.items() if name not in "?$"}


def _program(inside: Inside, name: str, command: Sequence[str], text: str) -> Result:
    if name in programs.SHELLS:
        return _shell(inside, name, command[1:], text)
    if name == "env" and len(command) > 1:
        return run(inside, command[1:], text) if "=" not in command[1] else Result()
    return programs.PROGRAMS[name](inside, list(command[1:]), text)


def _shell(inside: Inside, name: str, arguments: Sequence[str], text: str) -> Result:
    flags = [word for word in arguments if word.startswith("-")]
    if any("c" in flag for flag in flags):
        rest = [word for word in arguments if not word.startswith("-")]
        if not rest:
            return Result(err=f"{name}: 0: -c requires an argument\n", code=SYNTAX)
        return script(inside, rest[0], text, name)
    if len(arguments) > len(flags):
        missing = next(word for word in arguments if not word.startswith("-"))
        return Result(err=f"{name}: 0: cannot open {missing}: No such file\n", code=SYNTAX)
    return script(inside, text, shell=name)


def _refusal(inside: Inside, word: str) -> str:
    why = "executable file not found in $PATH"
    if "/" in word:
        kind = programs.is_path(inside, word)
        found = {"file": "permission denied", "directory": "is a directory"}
        why = found.get(kind, "no such file or directory")
        if kind != "file":
            return f'exec: "{word}": stat {word}: {why}' if not kind else f'exec: "{word}": {why}'
    return f'exec: "{word}": {why}'


def _redirected(found: Result, step: words.Step) -> Result:
    """What is left of the outputs, and in which of them."""
    outputs, places = {"1": found.out, "2": found.err}, {"1": "1", "2": "2"}
    for each in step.redirections:
        places[each.output] = places[each.target] if each.target else ""
    told = {
        place: "".join(outputs[number] for number, at in places.items() if at == place)
        for place in ("1", "2")
    }
    return dataclasses.replace(found, out=told["1"], err=told["2"])


def _assignment(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and name.isidentifier()
