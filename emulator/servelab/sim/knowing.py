"""The fields a scenario knows at each place, for those who mistype one."""

import difflib
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from servelab.sim.checking import Place
from servelab.sim.scenario import Scenario

Schema = Mapping[str, Any]


def hint(place: Place) -> str:
    """``; did you mean …?`` for an unknown field, or which ones there are, or nothing."""
    known = fields(place[:-1])
    near = difflib.get_close_matches(str(place[-1]), known, n=2, cutoff=0.6) if place else []
    if near:
        return f"; did you mean {' or '.join(near)}?"
    return f"; there are {', '.join(known)}" if 0 < len(known) <= 12 else ""


def fields(place: Place) -> Sequence[str]:
    """Names of the fields at a place, such as ("models", 0, "spec"); none where there are none."""
    found: dict[str, None] = {}
    for schema in _reached(_schema(), place):
        found.update(dict.fromkeys(schema.get("properties", ())))
    return tuple(found)


@functools.cache
def _schema() -> Schema:
    return Scenario.model_json_schema(by_alias=True)


def _reached(at: Schema, place: Place) -> Iterator[Schema]:
    """The schemas that may stand at a place."""
    if "$ref" in at:
        at = _schema()["$defs"][at["$ref"].rpartition("/")[2]]
    for one in at.get("anyOf", ()):
        yield from _reached(one, place)
    if not place:
        yield at
    elif isinstance(place[0], int):
        if "items" in at:
            yield from _reached(at["items"], place[1:])
    elif place[0] in at.get("properties", {}):
        yield from _reached(at["properties"][place[0]], place[1:])
    else:
        # Pydantic puts the name of a union's member into the way to a mistake.
        yield from (_reached(at, place[1:]) if at.get("title") == place[0] else ())
