"""Which regular expressions vLLM 0.33 takes: those that xgrammar 0.2.8 or llguidance reads."""

import re

_TOKEN = re.compile(
    r"(?P<escape>\\[pPux]\{[^}]*\}|\\.)|(?P<class>\[\^?\]?(?:\\.|\[:\w+:\]|[^\]\\])*\])"
    r"|(?P<group>\((?:\?(?::|P?<[A-Za-z_]\w*>|[imsUux-]+[:)]))?)|(?P<count>\{(\d+)(,(\d*))?\})"
    r"|(?P<bad>[\[{]|\(\?)|(?P<end>\))|(?P<repeat>[*+?])|(?P<other>.)",
    re.DOTALL,
)
_RANGE = re.compile(r"(?<![\\\[^])([^\\])-([^\]\\])")


def fault(pattern: str) -> str | None:
    """What is wrong with a regular expression; None if nothing is."""
    depth, repeatable = 0, False
    for match in _TOKEN.finditer(pattern):
        kind, text = match.lastgroup, match.group()
        wrong = _token_fault(match, depth, repeatable=repeatable)
        if wrong is not None:
            return wrong
        opens = kind == "group" and not text.endswith(")")
        depth += opens - (kind == "end")
        repeatable = not (kind == "group" or text == "|")
    return "a bracket is not closed" if depth else None


def _token_fault(match: re.Match[str], depth: int, *, repeatable: bool) -> str | None:
    kind, text = match.lastgroup, match.group()
    if kind == "escape" and (text[1] in "bBk" or text[1] in "123456789"):
        return f"{text} is not supported"
    if kind == "bad" or (kind == "group" and _looks(match)):
        return f"{text} is not supported, or not closed"
    if kind == "class" and any(low > high for low, high in _RANGE.findall(text[1:-1])):
        return f"the range in {text} is empty"
    if kind == "count" and match[7] and int(match[5]) > int(match[7]):
        return f"the count {text} is empty"
    if kind in ("repeat", "count") and not repeatable:
        return f"{text} has nothing to repeat"
    return f"{text} closes nothing" if kind == "end" and not depth else None


def _looks(match: re.Match[str]) -> bool:
    """Whether a group begins with a mark that is none of those known, as where it looks around."""
    return match.group() == "(" and match.string.startswith("?", match.end())
