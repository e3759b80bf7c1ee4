"""Which backend vLLM 0.33 lets constrain an answer: xgrammar, or another for what that cannot do.

An engine begins with the one that its first constrained request needs, and refuses the other ever
after.
"""

from collections.abc import Mapping
from typing import Any

from servelab.engine.calls import Call
from servelab.engine.surfaces.vllm import llguidance, xgrammar
from servelab.engine.surfaces.vllm.refusals import Refusal

XGRAMMAR, GUIDANCE, OUTLINES = "xgrammar", "guidance", "outlines"
_LENGTHS = frozenset({"minLength", "maxLength"})
_SHAPES = frozenset({"pattern", "format"})
_NUMBERS = frozenset({"integer", "number"})
_UNKNOWN_OF_ARRAYS = frozenset({"uniqueItems", "contains", "minContains", "maxContains"})


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
    """Who is given a JSON schema. Raises Refusal for one that nobody can use."""
    parts = list(llguidance.objects(schema))
    if not any(map(_beyond, parts)) and xgrammar.fault(schema) is None:
        return XGRAMMAR
    if any("patternProperties" in part for part in parts):
        wrong, backend = next(filter(None, map(xgrammar.type_fault, parts)), None), OUTLINES
    else:
        wrong, backend = llguidance.fault(schema), GUIDANCE
    if wrong is not None:
        raise Refusal(f"The JSON schema cannot be used: {wrong}.")
    return backend


def _beyond(part: Mapping[str, Any]) -> bool:
    """Whether vLLM asks xgrammar nothing of one object of a schema."""
    kinds, together = xgrammar.kinds(part), part.get("allOf")
    return (
        ("multipleOf" in part and not kinds.isdisjoint(_NUMBERS))
        or ("string" in kinds and (_is_shaped_and_measured(part) or _is_of_no_format(part)))
        or ("array" in kinds and not _UNKNOWN_OF_ARRAYS.isdisjoint(part))
        or ("object" in kinds and (_names_clash(part) or _patterns_clash(part)))
        or (isinstance(together, list) and len(together) >= 2)
    )


def _is_of_no_format(part: Mapping[str, Any]) -> bool:
    """Whether a text has a form that is none."""
    return "format" in part and part["format"] not in llguidance.FORMATS


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
    """The same of properties by patterns."""
    named = part.get("patternProperties", {})
    return isinstance(named, dict) and (len(named) > 1 or (bool(named) and "properties" in part))
