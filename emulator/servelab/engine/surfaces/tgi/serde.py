"""A body as TGI's router takes it: axum's JSON extractor over serde, with their words of refusal.

A kind says what a value must be. The first value that is none of its kind is told, in the order of
the text; fields nobody knows are skipped.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NoReturn

from servelab.engine.surfaces.tgi import places, refusals
from servelab.engine.surfaces.tgi.places import Key

U32_MAX, U64_MAX, I32_MAX = 2**32 - 1, 2**64 - 1, 2**31 - 1

Path = tuple[Key, ...]


class Noticed(Enum):
    """When serde says that a value is none of its kind: which place it tells."""

    AT_ONCE = 1
    AFTER_IT = 2
    AFTER_WHAT_FOLLOWS = 3  # the value was set aside, and whoever holds it tells


class Mismatch(Exception):
    """A value is none of its kind."""

    def __init__(self, message: str, path: Path, noticed: Noticed = Noticed.AT_ONCE) -> None:
        self.path = path
        self.noticed = noticed
        super().__init__(message)


Kind = Callable[[Any, Path], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field: its kind, and what stands for it where it is left out (None: it must be there)."""

    kind: Kind
    default: Callable[[], Any] | None = None
    alias: str | None = None


def string(value: Any, path: Path) -> str:
    """A text."""
    return value if isinstance(value, str) else _wrong(value, "a string", path)


def boolean(value: Any, path: Path) -> bool:
    """true or false."""
    return value if isinstance(value, bool) else _wrong(value, "a boolean", path)


def anything(value: Any, path: Path) -> Any:
    """Any JSON."""
    return value


def whole(name: str, least: int, most: int) -> Kind:
    """A whole number of a Rust type."""

    def take(value: Any, path: Path) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            return _wrong(value, name, path)
        if not least <= value <= most:
            raise Mismatch(f"invalid value: integer `{value}`, expected {name}", path)
        return value

    return take


u32 = whole("u32", 0, U32_MAX)
u64 = whole("u64", 0, U64_MAX)
usize = whole("usize", 0, U64_MAX)
i32 = whole("i32", -I32_MAX - 1, I32_MAX)
u8 = whole("u8", 0, 255)


def f32(value: Any, path: Path) -> float:
    """A number; one too large is infinite, as in Rust."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, "f32", path)
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def option(kind: Kind) -> Kind:
    """The kind, or null."""
    return lambda value, path: None if value is None else kind(value, path)


def optional(kind: Kind) -> Field:
    """A field that may be null or left out."""
    return Field(option(kind), lambda: None)


def listed(kind: Kind) -> Kind:
    """A list of a kind."""

    def take(value: Any, path: Path) -> list[Any]:
        if not isinstance(value, list):
            return _wrong(value, "a sequence", path)
        return [kind(item, (*path, index)) for index, item in enumerate(value)]

    return take


def struct(name: str, fields: Mapping[str, Field], expected: str = "") -> Kind:
    """An object with these fields; ``expected`` is what serde calls it where it is no struct."""
    names = {str(each.alias): own for own, each in fields.items() if each.alias}

    def take(value: Any, path: Path) -> dict[str, Any]:
        if not isinstance(value, dict):
            return _wrong(value, expected or f"struct {name}", path)
        taken: dict[str, Any] = {}
        for key, item in value.items():
            own = names.get(str(key), str(key))
            if own in fields:
                if own in taken:
                    raise Mismatch(f"duplicate field `{own}`", (*path, key))
                taken[own] = fields[own].kind(item, (*path, key))
        for own, each in fields.items():
            if own not in taken:
                if each.default is None:
                    raise Mismatch(f"missing field `{own}`", path, Noticed.AFTER_IT)
                taken[own] = each.default()
        return taken

    return take


def untagged(name: str, *kinds: Kind, noticed: Noticed = Noticed.AFTER_WHAT_FOLLOWS) -> Kind:
    """The first kind that fits."""

    def take(value: Any, path: Path) -> Any:
        for kind in kinds:
            try:
                return kind(value, path)
            except Mismatch:
                continue
        message = f"data did not match any variant of untagged enum {name}"
        raise Mismatch(message, path, noticed)

    return take


def read(kind: Kind, body: bytes, content_type: str) -> Any:
    """A body as its kind. Raises Refusal."""
    if not _is_json(content_type):
        raise refusals.media_type()
    try:
        document = _loads(body)
    except (ValueError, RecursionError):
        raise _syntax(body) from None
    try:
        return kind(document, ())
    except Mismatch as mismatch:
        raise _data(body, mismatch) from None


def _loads(body: bytes) -> Any:
    # serde_json stops after the first value; it also knows no NaN and no lone surrogate, and
    # counts how deep the text goes.
    if b"\\u" in body or body.count(b"[") + body.count(b"{") >= places.DEPTH_LIMIT:
        try:
            places.spans(body)
        except places.Malformed as error:
            raise ValueError(str(error)) from None
    document, _ = _DECODER.raw_decode(body.decode().lstrip(" \t\n\r"))
    return document


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _syntax(body: bytes) -> refusals.Rejection:
    try:
        places.spans(body)
    except places.Malformed as error:
        return refusals.syntax(f"{error} at {places.line_and_column(body, error.at)}")
    where = places.line_and_column(body, len(body))
    return refusals.syntax(f"invalid unicode code point at {where}")


def _data(body: bytes, mismatch: Mismatch) -> refusals.Rejection:
    told = _shown(mismatch.path)
    message = str(mismatch)
    at = _noticed_at(body, mismatch)
    if at is not None:
        message = f"{message} at {places.line_and_column(body, at)}"
    return refusals.data(f"{told}: {message}" if told else message)


def _noticed_at(body: bytes, mismatch: Mismatch) -> int | None:
    """How much of the body serde_json had read; None where it does not say."""
    document = places.spans(body)
    try:
        span = document.at(mismatch.path)
    except KeyError:  # a key with an escape in it
        return document.end
    match mismatch.noticed:
        case Noticed.AT_ONCE:
            return span.start if body[span.start : span.start + 1] in b"[{" else span.end
        case Noticed.AFTER_IT:
            return span.end
    if not mismatch.path:
        return None
    rest = body[span.end :].lstrip(b" \t\n\r")
    return len(body) - len(rest) + (rest[:1] in (b"}", b"]"))


def _shown(path: Sequence[Key]) -> str:
    text = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)
    return text.removeprefix(".")


def _wrong(value: Any, expected: str, path: Path) -> NoReturn:
    raise Mismatch(f"invalid type: {_unexpected(value)}, expected {expected}", path)


def _unexpected(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{str(value).lower()}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f"string {json.dumps(value, ensure_ascii=False)}"
        case list():
            return "sequence"
    return "map"


def _is_json(content_type: str) -> bool:
    kind, _, rest = content_type.partition(";")[0].strip().lower().partition("/")
    return kind == "application" and (rest == "json" or rest.endswith("+json"))
