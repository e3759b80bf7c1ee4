"""The arguments of ``vllm serve`` that differ from their defaults, as its log tells them.

After ``get_non_default_args`` of vllm/entrypoints/common/startup.py, 0.33.0: a dict by destination,
in the order of its parser. JSON of configurations with a class of their own stays what was given,
where the real log has that class with all its fields.
"""

import json
from typing import Any

from modelserve.engines import arguments, commandline

# Values that no log shows.
_SECRET = frozenset({"api_key", "hf_token", "watermark_config"})
# Of `vllm serve` alone, not of the parser that the defaults come from.
_APART = frozenset({"logging-config", "log-level", "log-config-file"})
# Given several times, these gather.
_GATHERED = frozenset({"middleware"})
_JSON = ("json", "config", "text or json")
# How data-parallel servers are divided, other than one for each rank.
_ONE_SERVER = (
    *("data-parallel-multi-port-external-lb", "data-parallel-external-lb", "data-parallel-rank"),
    "enable-elastic-ep",
)
_LOCAL_SERVERS = ("data-parallel-hybrid-lb", "data-parallel-start-rank")


def of(table: arguments.Table, flags: commandline.Flags) -> dict[str, Any]:
    """Values by destination, such as JSON can hold; an adapter is an object."""
    found: dict[str, Any] = {}
    place = next(iter(flags.positionals), None)
    if place is not None:
        found["model_tag"] = place
    for argument in table.arguments:
        if argument.name in _APART:
            continue
        value = _value(argument, flags, place)
        if value is None or value == _default(argument):
            continue
        name = argument.name.replace("-", "_")
        found[name] = "***" if name in _SECRET else value
    return found


def _default(argument: arguments.Argument) -> object:
    """Of lists and JSON the table has the text; of some configurations what Python prints."""
    same = argument.default
    several = argument.nargs == "+" or argument.kind in _JSON
    return _parsed(same) if several and isinstance(same, str) else same


def _value(argument: arguments.Argument, flags: commandline.Flags, place: str | None) -> Any:
    """What an argument came to, typed; None if it was not given."""
    if argument.name == "model" and place is not None:
        return place
    if argument.name == "api-server-count":
        count = flags.count("api-server-count") or _servers(flags)
        return count if count > 1 else None
    text = flags.values.get(argument.name)
    if text is None:
        return None
    if argument.name == "lora-modules":
        return [_adapter(item) for item in flags.lists[argument.name]]
    if argument.nargs == "+":
        return [_typed(argument, item) for item in flags.lists[argument.name]]
    if argument.kind in _JSON and argument.name in flags.lists:
        return list(flags.lists[argument.name])
    value = _typed(argument, text)
    return [value] if argument.name in _GATHERED else value


def _adapter(text: str) -> Any:
    """``name=path``, or an object with both."""
    if "=" in text and "," not in text:
        return dict(zip(("name", "path"), text.split("=", 1), strict=True))
    return _parsed(text)


def _servers(flags: commandline.Flags) -> int:
    """API servers if no count is given: one for each data-parallel rank that they are to serve."""
    if any(flags.on(name) for name in _ONE_SERVER):
        return 1
    ranks = "data-parallel-size"
    if any(flags.on(name) for name in _LOCAL_SERVERS):
        ranks = "data-parallel-size-local"
    return flags.count(ranks) or 1


def _typed(argument: arguments.Argument, text: str) -> Any:
    """A value as vLLM's parser has it, from what ours keeps of it."""
    if argument.is_switch:
        return text != "false"
    if text == "" and (argument.optional or argument.kind != "text"):
        return None
    if argument.kind in ("int", "size", "size or auto"):
        return int(text)
    if argument.kind == "float":
        return float(text)
    if argument.kind in _JSON:
        return _parsed(text)
    return text


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
