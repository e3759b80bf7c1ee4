"""How vLLM's parser reads words: names with underscores, dotted JSON, sizes, and typed values."""

import argparse
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from modelserve import errors

_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_POWERS = {"k": 1, "m": 2, "g": 3, "t": 4}
_ADAPTER_FIELDS = ("name", "path", "base_model_name", "is_3d_lora_weight")
_ADAPTER = "vllm.entrypoints.openai.models.protocol.LoRAModulePath"
_LEVELS = frozenset({"0", "1", "2", "3"})

Convert = Callable[[str], Any]


def dashed(words: Sequence[str]) -> list[str]:
    """The words as argparse is to see them: dashes in names, ``-O3`` spelt out, dotted joined.

    Raises InputError for a dotted name without value.
    """
    spelt: list[str] = []
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if word.startswith("--"):
            head, dot, tail = name.partition(".")
            spelt.append(head.replace("_", "-") + dot + tail + equals + value)
        elif word.startswith("-O") and word != "-O":
            spelt += ["--optimization-level", word[2:].removeprefix("=")]
        elif word == "-O" and index + 1 < len(words) and words[index + 1] in _LEVELS:
            spelt.append("--optimization-level")
        else:
            spelt.append(word)
    return _joined(spelt)


def size(text: str) -> int:
    """A whole number, or one with a suffix: ``32k`` is 32000, ``32K`` 32768, ``1.5m`` 1500000."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    power = _POWERS[suffix.lower()]
    if suffix.islower():
        value = float(number) * 1000**power
        if math.isinf(value):
            raise ValueError(f"{text} is too large")
        return int(value)
    if "." in number:
        raise argparse.ArgumentTypeError(
            f"Decimals are not allowed with binary suffixes like {suffix}. Did you mean to use "
            f"{number}{suffix.lower()} instead?"
        )
    whole: int = int(number) * 1024**power
    return whole


def size_or_auto(text: str) -> int:
    """As ``size``; ``auto`` is -1."""
    return -1 if text.strip().lower() in ("-1", "auto") else size(text)


def of(kind: str, *, optional: bool = False, wrapped: bool = False) -> Convert:
    """The conversion of a kind of value.

    Its ``__name__`` is what argparse calls it where it raises ValueError.
    """
    convert, name = _KINDS[kind]
    if optional or wrapped:
        return _wrapped(convert, name, optional=optional)

    def converted(text: str) -> Any:
        return convert(text)

    converted.__name__ = name
    return converted


def _wrapped(convert: Convert, name: str, *, optional: bool) -> Convert:
    # The real one adds an address in memory.
    shown = f"<class '{name}'>" if name in ("int", "float", "str") else f"<function {name}>"

    def converted(text: str) -> Any:
        if optional and text in ("", "None"):
            return None
        try:
            return convert(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"Value {text} cannot be converted to {shown}."
            ) from error

    return converted


def adapter_fault(text: str, *, lenient: bool) -> tuple[str, str] | None:
    """What vLLM says of a LoRA adapter before and behind its text; None for ``name=path``, or JSON.

    An object has a name and a path; if ``lenient``, it may have fields of another version too.
    """
    if "=" in text and "," not in text:
        return None
    try:
        told = _json(text)
    except ValueError:
        return "Invalid JSON format", ""
    if not isinstance(told, Mapping):
        kind = type(told).__name__
        said = f"{_ADAPTER}() argument after ** must be a mapping, not {kind}"
        return "Invalid fields", f" - {said}"
    missing = [name for name in ("name", "path") if name not in told]
    unknown = [name for name in told if name not in _ADAPTER_FIELDS]
    if unknown and not lenient:
        return "Invalid fields", _signature(f"got an unexpected keyword argument '{unknown[0]}'")
    if missing:
        count, names = len(missing), " and ".join(f"'{name}'" for name in missing)
        arguments = "argument" if count == 1 else "arguments"
        said = f"missing {count} required positional {arguments}: {names}"
        return "Invalid fields", _signature(said)
    return None


def _signature(complaint: str) -> str:
    return f" - LoRAModulePath.__init__() {complaint}"


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _text_or_json(text: str) -> Any:
    return _json(text) if re.fullmatch(r"(?s)\s*{.*}\s*", text) else text


def _config(text: str) -> Any:
    """A JSON object whose bare numbers may have suffixes; its fields are not looked at."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text)
    parts[::2] = [
        re.sub(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b", lambda found: str(size(found[0])), part)
        for part in parts[::2]
    ]
    try:
        value = _json("".join(parts))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"Invalid JSON: {error}") from error
    if not isinstance(value, Mapping):
        raise argparse.ArgumentTypeError(f"Input should be an object: {text}")
    return value


def _lower(text: str) -> str:
    return text.lower().replace("-", "_")


_KINDS: Mapping[str, tuple[Convert, str]] = {
    "int": (int, "int"),
    "float": (float, "float"),
    "text": (str, "str"),
    "adapter": (str, "str"),
    "lower": (_lower, "<lambda>"),
    "size": (size, "human_readable_int"),
    "size or auto": (size_or_auto, "human_readable_int_or_auto"),
    "json": (_json, "loads"),
    "text or json": (_text_or_json, "union_dict_and_str"),
    "config": (_config, "parse_dataclass"),
}


def _joined(words: Sequence[str]) -> list[str]:
    """``--flag.a.b value`` of all kinds gathered into one ``--flag`` with a JSON object."""
    plain: list[str] = []
    objects: dict[str, dict[str, Any]] = {}
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if not word.startswith("-") or "." not in name:
            plain.append(word)
            continue
        text = value if equals else next(rest, None)
        if text is None:
            raise errors.InputError(f"{name} has no value")
        if name.endswith("+"):
            name, text = name[:-1], json.dumps(text.split(","))
        flag, *path = name.split(".")
        _merge(objects.setdefault(flag, {}), path, _value(text))
    for flag, found in objects.items():
        plain += [flag, json.dumps(found)]
    return plain


def _merge(target: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put a value at its place; lists grow, other values are replaced."""
    for key in path[:-1]:
        inner = target.get(key)
        if not isinstance(inner, dict):
            inner = target[key] = {}
        target = inner
    last = path[-1] if path else ""
    if isinstance(value, list) and isinstance(target.get(last), list):
        target[last] += value
    else:
        target[last] = value


def _value(text: str) -> Any:
    try:
        return _json(text)
    except ValueError:
        pass
    try:
        return size(text)
    except (ValueError, argparse.ArgumentTypeError):
        return text
