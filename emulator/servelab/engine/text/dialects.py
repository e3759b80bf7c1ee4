"""How models write the call of a function, by the parser that looks for it, and what is told when.

A call is a row of parts. What a client hears of it while it is written differs by parser as well:
some pass the arguments on letter by letter, others only texts in them, or all at once.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A part of a call's text, and what is told of it once it is there.

    ``names``: that a function is called. ``verbatim``: its letters are arguments as they come.
    ``arguments``: more of them, all at once."""

    text: str
    names: bool = False
    verbatim: bool = False
    arguments: str = ""


class Written(str):
    """A call as text, with its parts."""

    name: str
    arguments: str  # JSON
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, name: str, arguments: str, parts: Sequence[Part]) -> "Written":
        """The text of the parts."""
        made = cls("".join(part.text for part in parts))
        made.name, made.arguments, made.parts = name, arguments, tuple(parts)
        return made


Arguments = Any  # what a JSON schema asks for; nearly always an object
Dialect = Callable[[str, Arguments], Written]


@dataclass(frozen=True, slots=True)
class Envelope:
    """Arguments as JSON between marks; ``{name}`` stands for the function.

    ``joins``: name and the first letter of the arguments are told together.
    """

    before: str
    between: str
    after: str
    joins: bool = False

    def __call__(self, name: str, arguments: Arguments) -> Written:
        told = _json(arguments)
        parts = [Part(self.before.replace("{name}", name), names=not self.joins)]
        parts.append(Part(self.between))
        if self.joins:
            parts.append(Part(told[:1], names=True, arguments=told[:1]))
        parts.append(Part(told[1:] if self.joins else told, verbatim=True))
        parts.append(Part(self.after))
        return Written.of(name, told, parts)


@dataclass(frozen=True, slots=True)
class Keyed:
    """Arguments one by one: ``opens`` before each, with its ``{key}``, ``closes`` after it.

    Texts stand in ``quote`` and are passed on letter by letter, other values once they are whole.
    ``eager``: what stands before a value is told with that. ``joins``: the name is told with the
    first of the arguments.
    """

    before: str
    opens: str
    closes: str
    after: str
    between: str = ""
    quote: str = ""
    eager: bool = False
    joins: bool = False

    def __call__(self, name: str, arguments: Arguments) -> Written:
        parts = [Part(self.before.replace("{name}", name), names=not self.joins)]
        due, named = "{", not self.joins
        given = arguments if isinstance(arguments, dict) else {}
        for place, (key, value) in enumerate(given.items()):
            due += (", " if place else "") + json.dumps(key, ensure_ascii=False) + ": "
            opens = (self.between if place else "") + self.opens.replace("{key}", key)
            if isinstance(value, str) and value and _json(value) == f'"{value}"':
                told = due + '"'
                parts.append(Part(opens + self.quote, names=not named, arguments=told))
                parts.append(Part(value, verbatim=True))
                parts.append(Part(self.quote + self.closes))
                due, named = '"', True
                continue
            if self.eager:
                parts.append(Part(opens, arguments=due))
                opens, due = "", ""
            raw = isinstance(value, str) and not self.quote
            written = value if raw else _json(value)
            parts.append(Part(opens + written + self.closes))
            due += _json(value)
        parts.append(Part(self.after, names=not named, arguments=due + "}"))
        return Written.of(name, _json(given), parts)


@dataclass(frozen=True, slots=True)
class AtOnce:
    """A list of calls as JSON, told when it is whole: the name, a brace, and the rest."""

    before: str
    after: str

    def __call__(self, name: str, arguments: Arguments) -> Written:
        told = _json(arguments)
        body = f'{{"name": {_json(name)}, "arguments": {told}}}'
        parts = [
            Part(f"{self.before}[{body}]{self.after}", names=True),
            Part("", arguments="{"),
            Part("", arguments=told[1:]),
        ]
        return Written.of(name, told, parts)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


HERMES = Envelope('<tool_call>\n{"name": "{name}"', ', "arguments": ', "}\n</tool_call>")
_PYTHONIC = Keyed("[{name}(", "{key}=", "", ")]", ", ", '"', joins=True)
_LLAMA = Keyed('{"name": "{name}", "parameters": {', '"{key}": ', "", "}}", ", ", '"')
_QWEN = Keyed(
    *("<tool_call>\n<function={name}>\n", "<parameter={key}>\n", "\n</parameter>\n"),
    *("</function>\n</tool_call>",),
    eager=True,
)
_SEED = Keyed(
    *("<seed:tool_call>\n<function={name}>\n", "<parameter={key}>", "</parameter>\n"),
    *("</function>\n</seed:tool_call>",),
    eager=True,
)
_GLM = Keyed(
    *("<tool_call>{name}\n", "<arg_key>{key}</arg_key>\n<arg_value>", "</arg_value>\n"),
    *("</tool_call>",),
    eager=True,
)
_MINIMAX = Keyed(
    '<minimax:tool_call>\n<invoke name="{name}">\n',
    '<parameter name="{key}">',
    "</parameter>\n",
    "</invoke>\n</minimax:tool_call>",
    eager=True,
)
_DEEPSEEK = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
_DEEPSEEK_END = "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"

# By the name of vLLM's parser; of one that is not here, hermes.
OF_PARSER: Mapping[str, Dialect] = {
    "deepseek_v3": Envelope(
        f"{_DEEPSEEK}function<｜tool▁sep｜>{{name}}",
        "\n```json\n",
        f"\n```{_DEEPSEEK_END}",
    ),
    "deepseek_v31": Envelope(f"{_DEEPSEEK}{{name}}", "<｜tool▁sep｜>", _DEEPSEEK_END),
    "glm45": _GLM,
    "glm47": _GLM,
    "granite": Envelope('<|tool_call|>[{"name": "{name}"', ', "arguments": ', "}]"),
    "hunyuan_a13b": AtOnce("<tool_calls>", "</tool_calls>"),
    "kimi_k2": Envelope(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|><|tool_calls_section_end|>",
        joins=True,
    ),
    "llama3_json": _LLAMA,
    "llama4_json": _LLAMA,
    "llama4_pythonic": _PYTHONIC,
    "minimax_m2": _MINIMAX,
    "mistral": Envelope("[TOOL_CALLS]{name}", "", "", joins=True),
    "olmo3": Keyed(
        *("<function_calls>{name}(", "{key}=", "", ")</function_calls>", ", ", '"'),
        joins=True,
    ),
    "pythonic": _PYTHONIC,
    "qwen3_coder": _QWEN,
    "qwen3_xml": _QWEN,
    "seed_oss": _SEED,
    "xlam": AtOnce("", ""),
}


def of_parser(name: str) -> Dialect:
    """What the parser of this name reads."""
    return OF_PARSER.get(name, HERMES)
