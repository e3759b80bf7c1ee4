"""Numbers and truths of a scenario must be written as such, as the API server demands it. Pure.

pydantic would take `true` for 1 and the text "3" for 3; of a ModelServe neither is accepted.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pydantic

from servelab.sim.scenario import Scenario

_WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
}


def mistaken(content: Mapping[str, Any]) -> Iterator[Any]:
    """pydantic's errors for texts and truths in place of numbers, and texts and numbers for truths.

    A number without a fraction is a whole one, however it is written (3.0), as for the API server.
    """
    try:
        Scenario.model_validate(content, strict=True, extra="forbid")
    except pydantic.ValidationError as error:
        yield from filter(sentence, error.errors(include_url=False))


def sentence(error: Any) -> str:
    """What is said of such an error; empty for any other."""
    wanted, given = _WANTED.get(error["type"]), error["input"]
    if wanted is None or (wanted != _WANTED["bool_type"] and not isinstance(given, bool | str)):
        return ""
    if isinstance(given, str):
        return f"must be {wanted}, and is the text {given!r}{_hint(given, wanted)}"
    if isinstance(given, bool | int | float):
        return f"must be {wanted}, and is {str(given).lower()}"
    return ""


def _hint(text: str, wanted: str) -> str:
    if wanted == _WANTED["bool_type"]:
        return ": write it without quotes" if text.lower() in ("true", "false") else ""
    try:
        number = float(text)
    except ValueError:
        return ""
    return f": write {number:.15g}"
