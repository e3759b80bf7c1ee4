"""Calls of functions: when an answer is one, and what is told of it.

With ``--tool-call-parser`` the parser finds calls in the answer's text; all parsers are alike here,
since clients do not see the text. Without one an answer that must be a call is an array of calls in
JSON: a chat tells it as its text, the responses API reads it.
"""

import random
import uuid
from collections.abc import Sequence
from typing import Any

from servelab.engine.calls import Calling, Served
from servelab.engine.surfaces import called
from servelab.engine.surfaces.sglang import messages
from servelab.engine.text import template, writing

PARSER = "tool-call-parser"


def functions(tools: Sequence[messages.Tool] | None) -> list[template.Function]:
    """The tools of a chat."""
    told = [tool.function for tool in tools or ()]
    return [template.Function(each.name, each.description, each.parameters) for each in told]


def wanted(
    choice: str | None,
    known: Sequence[template.Function],
    served: Served,
    *,
    answered: bool,
    formed: bool,
) -> tuple[Calling | None, writing.Write | None]:
    """Whether the answer is a call, and how it is written.

    ``choice``: ``auto``, ``required``, ``none`` or, after a colon, a name. ``answered``: the last
    call has been answered, so that words are next. ``formed``: the answer is to be of a form.
    """
    if choice == "none" or not known:
        return None, None
    parses = served.has(PARSER)
    if choice == "auto":
        if not parses or answered or formed:
            return None, None
        return Calling.AUTO, writing.call(known)
    named = [each for each in known if choice == f":{each.name}"] or known
    calling = Calling.REQUIRED if choice == "required" else Calling.NAMED
    return calling, writing.call(named) if parses else _array(named)


def _array(known: Sequence[template.Function]) -> writing.Write:
    write = writing.call(known)

    def written(rng: random.Random) -> str:
        text = write(rng).removeprefix(writing.CALL_START).removesuffix(writing.CALL_END)
        return f"[{text.replace(called.ARGUMENTS, called.PARAMETERS, 1)}]"

    return written


def name(rid: str, index: int = 0) -> str:
    """The name of a call in the answer to this request."""
    return f"call_{uuid.uuid5(uuid.NAMESPACE_OID, f'{rid}/{index}').hex[:24]}"


def told(call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    """A call in a message, or a part of it in an event."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "index": 0, "type": "function", "function": function}
