"""Which backend vLLM 0.33 lets constrain an answer: xgrammar, or another for what that cannot do.

An engine begins with the one that its first constrained request needs, and refuses the other ever
after.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.surfaces.vllm.refusals import Refusal

XGRAMMAR, GUIDANCE, OUTLINES = "xgrammar", "guidance", "outlines"
_LENGTHS = frozenset({"minLength", "maxLength"})
_SHAPES = frozenset({"pattern", "format"})


class Backends:
    """The backend of one engine, once it has one.

    Large bodies are read on a thread, which may ask as well: it takes one assignment to begin.
    """

    def __init__(self) -> None:
        self._begun = ""

    def check(self, call: Call) -> Call:
        """The call, or one that is refused where it streams. Raises Refusal."""
        if not call.backend or call.late is not None:
            return call
        self._begun = self._begun or call.backend
        if call.backend == self._begun:
            return call
        refusal = Refusal(
            f"This engine has begun to constrain answers with {self._begun}, and this request "
            f"needs {call.backend}: leave out what only that can do."
        )
        if not call.stream:
            raise refusal
        return call._replace(late=refusal)


def of_schema(schema: Any) -> str:
    """Who takes a sound JSON schema."""
    parts = list(_objects(schema))
    if not any(map(_beyond, parts)):
        return XGRAMMAR
    return OUTLINES if any("patternProperties" in part for part in parts) else GUIDANCE


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """All objects in a document, whether or not they are schemas: vLLM looks at each."""
    level = [value]
    while level:
        found = [each for each in level if isinstance(each, dict)]
        yield from found
        level = [child for each in level if isinstance(each, list) for child in each]
        level += [child for each in found for child in each.values()]


def _beyond(part: Mapping[str, Any]) -> bool:
    """Whether xgrammar cannot do what one object of a schema asks."""
    kinds = part.get("type")
    kinds = {kinds} if isinstance(kinds, str) else kinds if isinstance(kinds, list) else ()
    together = part.get("allOf")
    return (
        ("multipleOf" in part and ("integer" in kinds or "number" in kinds))
        or ("string" in kinds and _is_shaped_and_measured(part))
        or ("object" in kinds and (_names_clash(part) or _patterns_clash(part)))
        or (isinstance(together, list) and len(together) >= 2)
        or isinstance(part.get("items"), list)
        or isinstance(part.get("exclusiveMinimum"), bool)
        or isinstance(part.get("exclusiveMaximum"), bool)
        or (isinstance(part.get("properties"), dict) and False in part["properties"].values())
        or ("object" in kinds and bool(part.get("minProperties")) and not part.get("properties"))
    )


def _is_shaped_and_measured(part: Mapping[str, Any]) -> bool:
    """Whether a text has a form and bounds of its length."""
    return not (_SHAPES.isdisjoint(part) or _LENGTHS.isdisjoint(part))


def _names_clash(part: Mapping[str, Any]) -> bool:
    """Whether rules for the names of properties stand beside others that they exclude."""
    if "propertyNames" not in part:
        return False
    names = part["propertyNames"]
    return (
        (isinstance(names, dict) and _is_shaped_and_measured(names))
        or "patternProperties" in part
        or "properties" in part
        or part.get("unevaluatedProperties", True) is not True
    )


def _patterns_clash(part: Mapping[str, Any]) -> bool:
    """The same of properties by patterns, or whether these are no schemas."""
    patterns = part.get("patternProperties", {})
    if not isinstance(patterns, dict):
        return True
    many = len(patterns) > 1 or (bool(patterns) and "properties" in part)
    return many or not all(isinstance(each, dict | bool) for each in patterns.values())
