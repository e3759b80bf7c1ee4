"""An engine's command line read by the rules of its own parser, from a table of its arguments.

The rules are argparse's with vLLM's additions: underscores for dashes, ``--no-X``, ``--flag.field
value`` for JSON, ``32k`` for whole numbers, unique beginnings of long flags.
"""

import argparse
import difflib
import functools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, NoReturn

import yaml

from modelserve import errors
from modelserve.catalog import images
from modelserve.engines import commandline, conversions

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = re.compile(r"v?(\d+\.\d+)")
_INVERSES = {"--enable-": "--disable-", "--disable-": "--enable-"}


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, in the words of the table: see the head of the data file."""

    group: str
    flags: tuple[str, ...]
    kind: str
    optional: bool = False
    nargs: str = ""
    wrapped: bool = False
    choices: tuple[Any, ...] = ()
    default: object = None
    last: str = ""  # of a retired one: the last version that has it

    @property
    def name(self) -> str:
        """Its first flag without dashes."""
        return self.flags[0].lstrip("-")

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.kind in ("bare", "toggle", "switch")

    @property
    def negatives(self) -> tuple[str, ...]:
        """The flags that switch it off."""
        if self.kind not in ("switch", "toggle"):
            return ()
        long = [flag for flag in self.flags if flag.startswith("--")]
        if self.kind == "toggle":
            return tuple(f"--no-{flag[2:]}" for flag in long)
        pairs = [
            inverse + flag.removeprefix(prefix)
            for flag in long
            for prefix, inverse in _INVERSES.items()
            if flag.startswith(prefix)
        ]
        return (*(f"--no-{flag[2:]}" for flag in long), *pairs)


@dataclass(frozen=True, slots=True)
class Table:
    """All arguments of an engine's version, and those of earlier ones that it refuses."""

    version: str
    dialect: str
    takes_model: bool  # as its one positional
    commands: tuple[str, ...]
    arguments: tuple[Argument, ...]
    retired: tuple[Argument, ...]

    def describes(self, image: str) -> bool:
        """Whether an image is of this version, as far as its tag says."""
        tag = _TAG.match(images.split(image)[1])
        return tag is None or self.version.startswith(tag[1] + ".")

    def find(self, flag: str) -> Argument | None:
        """The argument that a flag sets, in either direction."""
        for argument in self.arguments:
            if flag in argument.flags or flag in argument.negatives:
                return argument
        return None


@functools.cache
def load(name: str) -> Table:
    """The table ``data/<name>.yaml``."""
    text = resources.files("modelserve.engines").joinpath(f"data/{name}.yaml").read_text("utf-8")
    document: Mapping[str, Any] = yaml.load(text, Loader=_LOADER)
    groups = document["groups"].items()
    return Table(
        version=document["version"],
        dialect=document["dialect"],
        takes_model=document["takes_model"],
        commands=tuple(document["commands"]),
        arguments=tuple(_argument(group, row) for group, rows in groups for row in rows),
        retired=tuple(_argument("retired", row) for row in document["retired"]),
    )


def parse(
    table: Table, words: Sequence[str], program: str, usage: str = "", *, lenient: bool = False
) -> commandline.Flags:
    """The flags by their first name, and positionals; whole numbers are written out.

    ``program`` and ``usage`` are how the engine calls itself in its messages. A lenient parser
    stands for another version than the table's: it takes retired and unknown flags.
    Raises UsageError where the engine's own parser would end with exit code 2.
    """
    parser = _parser(table, lenient)
    parser.prog, parser.usage = program, usage
    read = conversions.dashed(words) if table.dialect == "vllm" else list(words)
    namespace, extras = parser.parse_known_args(read)
    positionals = [word for word in extras if not word.startswith("-")]
    left = list(extras)
    if table.takes_model and positionals:
        left.remove(positionals[0])
    if left and not lenient:
        raise _unrecognized(table, left, program, usage)
    given = vars(namespace)
    return commandline.Flags(
        {name: _text(value) for name, value in given.items()},
        tuple(positionals),
        {name: tuple(map(_text, each)) for name, each in given.items() if isinstance(each, list)},
    )


def _argument(group: str, row: Mapping[str, Any]) -> Argument:
    lists = {"flags": tuple(row["flags"]), "choices": tuple(row.get("choices", ()))}
    return Argument(**{"group": group, **row, **lists})


class _Parser(argparse.ArgumentParser):
    """An argparse parser that raises."""

    lenient = False

    def error(self, message: str) -> NoReturn:
        raise errors.UsageError(f"{self.prog}: error: {message}", self.format_usage().strip())


class _Switch(argparse.Action):
    """A flag and its negations."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, default: object, negatives: Sequence[str]
    ) -> None:
        self._negatives = frozenset(negatives)
        # As argparse's own: a negation follows its flag, further names come after.
        first, *further = option_strings
        strings = [first, *negatives[:1], *further, *negatives[1:]]
        super().__init__(strings, dest, nargs=0, default=default)

    def hide(self) -> None:
        """Where there is a pair of --enable-X and --disable-X, messages do not show --no-…."""
        if any(not flag.startswith("--no-") for flag in self._negatives):
            self.option_strings = [
                flag
                for flag in self.option_strings
                if flag not in self._negatives or not flag.startswith("--no-")
            ]

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, option_string not in self._negatives)


class _Adapters(argparse.Action):
    """LoRA adapters, looked at as vLLM's own action does (LoRAParserAction of its cli_args.py)."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        given = [text for text in values or () if text]
        for text in given:
            lenient = isinstance(parser, _Parser) and parser.lenient
            if said := conversions.adapter_fault(text, lenient=lenient):
                parser.error(f"{said[0]} for --lora-modules: {text}{said[1]}")
        setattr(namespace, self.dest, given)


@functools.cache
def _parser(table: Table, lenient: bool) -> _Parser:
    parser = _Parser(argument_default=argparse.SUPPRESS, add_help=False)
    parser.lenient = lenient
    parser.add_argument("-h", "--help", action="store_true")
    for argument in (*table.arguments, *(table.retired if lenient else ())):
        if argument.kind in ("switch", "toggle"):
            action = parser.add_argument(
                *argument.flags,
                dest=argument.name,
                action=_Switch,
                negatives=argument.negatives,
            )
            assert isinstance(action, _Switch)
            action.hide()
        elif argument.kind == "bare":
            parser.add_argument(*argument.flags, dest=argument.name, action="store_true")
        else:
            parser.add_argument(*argument.flags, dest=argument.name, **_valued(argument))
    return parser


def _valued(argument: Argument) -> dict[str, Any]:
    """What argparse is told of an argument with a value."""
    convert: Callable[[str], Any] = conversions.of(
        argument.kind, optional=argument.optional, wrapped=argument.wrapped
    )
    told: dict[str, Any] = {"type": convert}
    if argument.choices:
        told["choices"] = [*argument.choices, *([None] if argument.optional else [])]
    if argument.nargs:
        told["nargs"] = argument.nargs
    if argument.nargs == "?":
        told["const"] = True
    if argument.kind == "adapter":
        told["action"] = _Adapters
    return told


def _unrecognized(table: Table, left: Sequence[str], program: str, usage: str) -> errors.UsageError:
    """What argparse says of words nobody takes: a subcommand's are refused by the main parser."""
    main, _, command = program.partition(" ")
    if command:
        usage = f"usage: {main} [-h] [-v] {{{','.join(table.commands)}}} ..."
    message = f"{main}: error: unrecognized arguments: {' '.join(left)}"
    return errors.UsageError(message, usage, _hint(table, left))


def _hint(table: Table, left: Sequence[str]) -> str:
    """The flag that was perhaps meant by the first unknown one."""
    unknown = next((word.partition("=")[0] for word in left if word.startswith("-")), None)
    if unknown is None:
        return ""
    for argument in table.retired:
        if unknown in argument.flags:
            return f"{unknown} was there up to {argument.last} or a little later"
    known = [
        flag
        for each in table.arguments
        for flag in (*each.flags, *each.negatives)
        if flag[:2] == "--"
    ]
    near = difflib.get_close_matches(unknown, known, n=1)
    return f"did you mean {near[0]}?" if near else ""


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "" if not value else _text(value[0])
    if isinstance(value, (dict, type(None))):
        return "" if value is None else json.dumps(value)
    return str(value)
