"""What is left of things that came and went: all that can be reached from some objects."""

import asyncio
import collections
import gc
import logging
import types
from collections.abc import Iterable

# What everything refers to, and what refers to nothing.
_BEYOND = (
    *(types.ModuleType, type, types.CodeType, logging.Logger, asyncio.AbstractEventLoop),
    *(str, bytes, int, float),
)
_CONTAINERS = (dict, list, set, frozenset, collections.deque)


def reachable(*roots: object, apart: Iterable[object] = ()) -> int:
    """Objects that these refer to, directly or not, and entries of containers among them.

    Not through those ``apart``, nor through modules, classes and the event loop.
    """
    gc.collect()
    seen, todo, count = {id(each) for each in apart}, list(roots), 0
    while todo:
        found = todo.pop()
        if id(found) in seen or isinstance(found, _BEYOND):
            continue
        seen.add(id(found))
        count += 1 + (len(found) if isinstance(found, _CONTAINERS) else 0)
        if isinstance(found, types.FunctionType):
            todo += found.__closure__ or ()  # Its globals are a whole module.
        else:
            todo += gc.get_referents(found)
    return count
