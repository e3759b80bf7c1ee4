"""Reads a container's command line as the kubelet and a shell would: words, flags, positionals."""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

_SHELLS = frozenset({"sh", "bash", "ash", "dash", "zsh"})
_OPERATORS = frozenset({"&&", "||", ";", "|", "&", ">", ">>", "<", "2>", "(", ")"})
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_SHELL_REFERENCE = re.compile(r"\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))")
_NUMBER = re.compile(r"^-?[0-9.]")
_NO_ALIASES: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Container:
    """A container's image, its words (command then args, a shell's script taken apart) and env."""

    image: str
    words: tuple[str, ...]
    has_command: bool
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Flags:
    """Flags by name without dashes, ``_`` as ``-``; a flag without value is ``""``.

    ``lists`` has all values of flags that take several; ``values`` has their first.
    """

    values: Mapping[str, str]
    positionals: tuple[str, ...]
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def text(self, *names: str) -> str | None:
        """The value of the first of these flags that is there and not empty."""
        return next((self.values[name] for name in names if self.values.get(name)), None)

    def count(self, *names: str) -> int | None:
        """The same as a whole number above zero, with vLLM's ``8k``/``8K``; None if it is none."""
        text = (self.text(*names) or "").strip().replace("_", "")
        factor = {"k": 1000, "K": 1024, "m": 1000**2, "M": 1024**2}.get(text[-1:], 1)
        digits = text[:-1] if factor > 1 else text
        try:
            number = round(float(digits) * factor)
        except (ValueError, OverflowError):
            return None
        return number if number > 0 else None

    def share(self, *names: str) -> float | None:
        """The same as a share over 0 up to 1; None if it is none."""
        try:
            number = float(self.text(*names) or "")
        except ValueError:
            return None
        return number if 0 < number <= 1 else None

    def whole(self, name: str) -> int | None:
        """A whole number from zero on; None if it is none."""
        text = self.text(name) or ""
        return int(text) if text.isdecimal() else None

    def on(self, name: str, *, default: bool = False) -> bool:
        """Whether a switch is given (and not ``=false``)."""
        return self.values[name].lower() != "false" if name in self.values else default


def read(container: Mapping[str, Any]) -> Container:
    """Image, words and env of a pod's container. Never raises: what cannot be read is left out."""
    env = {
        str(item.get("name")): str(item.get("value") or "")
        for item in container.get("env") or ()
        if isinstance(item, Mapping)
    }
    command = [str(word) for word in container.get("command") or ()]
    args = [str(word) for word in container.get("args") or ()]
    words = [_expand(word, env) for word in [*command, *args]]
    return Container(
        image=str(container.get("image") or ""),
        words=tuple(_unwrap(words, env)),
        has_command=bool(command),
        env=env,
    )


def after(words: Sequence[str], *program: str) -> tuple[str, ...] | None:
    """What follows a program's words (``"vllm", "serve"``; a path before the first is fine)."""
    for start in range(len(words) - len(program) + 1):
        first = words[start].rsplit("/", 1)[-1]
        if (first, *words[start + 1 : start + len(program)]) == program:
            return until_operator(words[start + len(program) :])
    return None


def flags(
    words: Sequence[str], switches: Collection[str] = (), aliases: Mapping[str, str] = _NO_ALIASES
) -> Flags:
    """Flags and positionals; ``switches`` are flags that take no value.

    Takes ``--a b``, ``--a=b``, ``-a b``; of a repeated flag the last counts, as in argparse.
    ``aliases`` are other names of flags, with that by which each is told; of those of one letter
    ``-ab`` is ``-a b``.
    """
    values: dict[str, str] = {}
    positionals: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        if not word.startswith("-") or _NUMBER.match(word) or word == "-":
            positionals.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not word.startswith("--") and name not in aliases and name[:1] in aliases:
            name, equals, value = name[0], "=", word[2:].removeprefix("=")
        name = aliases.get(name, name)
        if not equals and name not in switches and index < len(words):
            following = words[index]
            if not following.startswith("-") or _NUMBER.match(following):
                value, index = following, index + 1
        values[name] = value
    return Flags(values, tuple(positionals))


def is_shell(word: str) -> bool:
    """Whether a program is a shell, whatever its path."""
    return word.rsplit("/", 1)[-1] in _SHELLS


def _expand(word: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` as the kubelet expands it; an unknown name stays as it is."""
    return _REFERENCE.sub(lambda match: env.get(match[1], match[0]), word)


def _unwrap(words: list[str], env: Mapping[str, str]) -> list[str]:
    """The words of the script in ``sh -c SCRIPT``, or the words as they are."""
    if not words or not is_shell(words[0]):
        return words
    script = next(
        (words[i + 1] for i, w in enumerate(words[:-1]) if re.fullmatch(r"-\w*c\w*", w)), None
    )
    if script is None:
        return words
    script = script.replace("\\\n", " ")
    script = _SHELL_REFERENCE.sub(lambda m: env.get(m[1] or m[2], m[0]), script)
    lexer = shlex.shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.whitespace = " \t\r"
    lexer.commenters = ""
    try:
        return _lines(lexer)
    except ValueError:
        return words


def _lines(lexer: shlex.shlex) -> list[str]:
    """Words of a script; a line's end becomes a word of its own."""
    words: list[str] = []
    for word in lexer:
        parts = word.split("\n")
        for number, part in enumerate(parts):
            if number:
                words.append(";")
            if part:
                words.append(part)
    return words


def until_operator(words: Sequence[str]) -> tuple[str, ...]:
    """The words up to a shell's ``&&``, ``;``, ``|`` and their like."""
    for index, word in enumerate(words):
        if word in _OPERATORS:
            return tuple(words[:index])
    return tuple(words)
