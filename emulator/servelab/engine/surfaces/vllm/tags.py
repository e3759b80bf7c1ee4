"""Which structural tags vLLM 0.33 takes: what xgrammar 0.2.8 asks of them, field by field."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.vllm import patterns, xgrammar
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import productions

Check = Callable[[Any], str | None]  # what is wrong with a value; None if nothing is

_MOST_COUNT = 2**31 - 1
_STYLES = frozenset(
    {
        *("json", "qwen_xml", "minimax_xml", "minimax_m3_xml", "deepseek_xml", "glm_xml"),
        *("cohere_xml", "kimi_k3_xml", "deepseek_v4_1_xml"),
    }
)


def check_text(tag: Any, param: str) -> None:
    """A structural tag that must be told as text. Raises Refusal."""
    try:
        check(json.loads(tag) if isinstance(tag, str) else None, param)
    except (ValueError, RecursionError):
        check(None, param)


def check(tag: Any, param: str) -> None:
    """A structural tag as it came. Raises Refusal."""
    wrong = fault(tag)
    if wrong is not None:
        message = f"The structural tag in {param} cannot be used: {wrong}."
        raise Refusal(message, param=param)


def fault(tag: Any) -> str | None:
    """What is wrong with a structural tag; None if nothing is."""
    if not isinstance(tag, Mapping):
        return "a structural tag must be an object"
    return _legacy(tag) if "structures" in tag else _format(tag.get("format"))


def _legacy(tag: Mapping[str, Any]) -> str | None:
    structures, triggers = tag["structures"], tag.get("triggers", [])
    filled = isinstance(structures, list) and structures and isinstance(triggers, list) and triggers
    if not filled or not all(isinstance(each, Mapping) for each in structures):
        return "structures and triggers must be lists, and not empty"
    if _texts(triggers) is not None:
        return "triggers must be a list of texts"
    if not all(isinstance(each.get("end"), str) for each in structures):
        return "a structure needs begin and end"
    begins = [each.get("begin") for each in structures]
    return next((wrong for begin in begins if (wrong := _begun(begin, triggers))), None)


def _format(form: Any) -> str | None:
    if not isinstance(form, Mapping):
        return "a format must be an object"
    kind = form.get("type")
    fields = _FIELDS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        return f"there is no format of type {kind!r}"
    for name, judge in fields.items():
        needed, name = name.endswith("!"), name.rstrip("!")
        if name not in form:
            if needed:
                return f"a format of type {kind} needs {name}"
        elif (wrong := judge(form[name])) is not None:
            return f"{name}: {wrong}"
    return _whole_fault(form)


def _whole_fault(form: Mapping[str, Any]) -> str | None:
    """What is wrong with fields of a format together."""
    kind = form["type"]
    if kind == "tag" and _endless(form["content"]) and not _excludes(form["content"]):
        ends = form["end"] if isinstance(form["end"], list) else [form["end"]]
        return None if any(ends) else "what has no end of its own needs one that is not empty"
    if kind == "triggered_tags":
        begins = [each["begin"] for each in form["tags"]]
        return next((wrong for begin in begins if (wrong := _begun(begin, form["triggers"]))), None)
    by_token = kind == "token_triggered_tags"
    if by_token and not all(_is_token(each["begin"]) for each in form["tags"]):
        return "tags must begin with a token"
    return None


def _begun(begin: Any, triggers: Sequence[str]) -> str | None:
    """What is wrong with how a tag begins."""
    if isinstance(begin, str) and sum(begin.startswith(each) for each in triggers) == 1:
        return None
    return f"{begin!r} must begin with one of the triggers"


def _endless(form: Mapping[str, Any]) -> bool:
    """Whether nothing in it says where it ends."""
    kind = form["type"]
    if kind in ("sequence", "or"):
        return any(_endless(each) and not _excludes(each) for each in form["elements"])
    if kind == "optional":
        return _endless(form["content"])
    if kind == "repeat":
        return form["max"] == -1 or (form["max"] != 0 and _endless(form["content"]))
    return kind in _ENDLESS


def _excludes(form: Mapping[str, Any]) -> bool:
    barred = form.get("excludes") or form.get("exclude_tokens")
    return bool(barred) and form["type"] in _ENDLESS


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "it must be a text"


def _filled(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "it must be a text, and not empty"


def _flag(value: Any) -> str | None:
    return None if isinstance(value, bool) else "it must be true or false"


def _whole(value: Any) -> str | None:
    return None if type(value) is int else "it must be a whole number"


def _count(value: Any) -> str | None:
    fits = value is None or (type(value) is int and 0 <= value <= _MOST_COUNT)
    return None if fits else f"it must be from 0 to {_MOST_COUNT}"


def _token(value: Any) -> str | None:
    """By its id: for names there is no tokenizer at hand where that is looked at."""
    return None if type(value) is int and value >= 0 else "it must be the id of a token"


def _style(value: Any) -> str | None:
    return None if value in _STYLES else f"it must be one of {', '.join(sorted(_STYLES))}"


def _schema(value: Any) -> str | None:
    return xgrammar.fault(value)


def _pattern(value: Any) -> str | None:
    return _filled(value) or patterns.fault(value)


def _grammar(value: Any) -> str | None:
    wrong = _filled(value)
    if wrong is not None:
        return wrong
    try:
        productions.Grammar(value)
    except (ValueError, RecursionError) as error:
        return str(error)
    return None


def _each(judge: Check, *, filled: bool = False) -> Check:
    """A list, each of which is judged."""

    def judge_all(values: Any) -> str | None:
        if not isinstance(values, list) or (filled and not values):
            return "it must be a list" + (", and not empty" if filled else "")
        return next((wrong for each in values if (wrong := judge(each)) is not None), None)

    return judge_all


def _tag(value: Any) -> str | None:
    """A format that is a tag, whether or not it says so."""
    if not isinstance(value, Mapping) or value.get("type", "tag") != "tag":
        return "it must be a tag"
    return _format({"type": "tag", **value})


def _begin(value: Any) -> str | None:
    return _format(value) if _is_token(value) else _text(value)


def _end(value: Any) -> str | None:
    if isinstance(value, list):
        return _each(_text, filled=True)(value)
    return _begin(value)


def _is_token(value: Any) -> bool:
    return isinstance(value, Mapping) and value.get("type") == "token"


def _rule(judge: Check) -> Check:
    """What begins a format, and that format."""

    def judge_both(value: Any) -> str | None:
        if not isinstance(value, list) or len(value) != 2:
            return "it must be a pair"
        return judge(value[0]) or _format(value[1])

    return judge_both


_texts = _each(_text)
_tokens = _each(_token)
_tags = _each(_tag, filled=True)
_formats = _each(_format, filled=True)
_ONCE: Mapping[str, Check] = {"at_least_one": _flag, "stop_after_first": _flag}
# What the fields of each format hold; those with a mark it needs.
_FIELDS: Mapping[str, Mapping[str, Check]] = {
    "const_string": {"value!": _text},
    "json_schema": {
        "json_schema!": _schema,
        "style": _style,
        "any_order": _flag,
        "max_whitespace_cnt": _count,
        "excludes": _texts,
    },
    "qwen_xml_parameter": {"json_schema!": _schema},
    "any_text": {"excludes": _texts, "max_tokens": _count, "max_chars": _count},
    "grammar": {"grammar!": _grammar},
    "regex": {"pattern!": _pattern},
    "sequence": {"elements!": _formats},
    "or": {"elements!": _formats},
    "tag": {"begin!": _begin, "content!": _format, "end!": _end},
    "triggered_tags": {
        "triggers!": _each(_filled, filled=True),
        "tags!": _tags,
        "excludes": _texts,
        **_ONCE,
    },
    "token_triggered_tags": {
        "trigger_tokens!": _each(_token, filled=True),
        "tags!": _tags,
        "exclude_tokens": _tokens,
        **_ONCE,
    },
    "tags_with_separator": {"tags!": _tags, "separator!": _text, **_ONCE},
    "optional": {"content!": _format},
    "plus": {"content!": _format},
    "star": {"content!": _format},
    "repeat": {"min!": _whole, "max!": _whole, "content!": _format},
    "token": {"token!": _token},
    "exclude_token": {"exclude_tokens": _tokens},
    "any_tokens": {"exclude_tokens": _tokens, "max_tokens": _count},
    "dispatch": {"rules!": _each(_rule(_filled), filled=True), "loop": _flag, "excludes": _texts},
    "token_dispatch": {
        "rules!": _each(_rule(_token), filled=True),
        "loop": _flag,
        "exclude_tokens": _tokens,
    },
}
_ENDLESS = frozenset(
    {
        *("any_text", "any_tokens", "triggered_tags", "token_triggered_tags", "dispatch"),
        *("token_dispatch", "tags_with_separator", "star", "plus"),
    }
)
