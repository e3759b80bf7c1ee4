"""How much a body may hold beside text.

Checking a schema takes up to a thousand times the memory of a body of many small values: 600 kB
of empty messages took 2 GB and as many seconds, while nobody else was answered. Real engines have
no such bound; within it they answer as ever.
"""

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

from modelserve.errors import InputError
from servelab.engine.exchange import Exchange, Handler, Route

# Bytes of a body that is not looked at, values in all, objects and lists among them, and entries
# of a list that has to hold objects.
FREE_BYTES = 4096
MOST_VALUES = 1_000_000
MOST_OBJECTS = 20_000
MOST_LISTED = 4096
# Lists of objects whose check costs most.
_OF_OBJECTS = frozenset({"messages", "tools"})
# A body without any of these has no such list, not even under a name in other letters.
_SIGNS = (*(name.encode() for name in sorted(_OF_OBJECTS)), b"\\u")


def guarded(routes: Iterable[Route]) -> list[Route]:
    """The routes, with handlers that refuse bodies of too many values."""
    return [dataclasses.replace(route, handler=_guard(route.handler)) for route in routes]


def check(body: bytes) -> None:
    """Raises InputError for a body of too many values."""
    commas = body.count(b",")
    if commas > MOST_VALUES:
        raise InputError(f"The body holds more than {MOST_VALUES} values.")
    few = body.count(b"{") + body.count(b"[") <= MOST_OBJECTS
    if few and (commas <= MOST_LISTED or not any(sign in body for sign in _SIGNS)):
        return
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return  # The engine has its own words for that.
    _walk(document)


def _guard(handler: Handler) -> Handler:
    def handle(exchange: Exchange) -> None:
        body = exchange.request.body
        if len(body) > FREE_BYTES:
            check(body)
        handler(exchange)

    return handle


def _walk(document: Any) -> None:
    objects = 0
    level = [document] if isinstance(document, dict | list) else []
    while level:
        objects += len(level)
        if objects > MOST_OBJECTS:
            raise InputError(f"The body holds more than {MOST_OBJECTS} objects and lists.")
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                for name in _OF_OBJECTS & each.keys():
                    _check_list(name, each[name])
            values = each.values() if isinstance(each, dict) else each
            below += [value for value in values if isinstance(value, dict | list)]
        level = below


def _check_list(name: str, value: Any) -> None:
    if isinstance(value, list) and len(value) > MOST_LISTED:
        raise InputError(f"{name} holds {len(value)} entries; at most {MOST_LISTED} are taken.")
