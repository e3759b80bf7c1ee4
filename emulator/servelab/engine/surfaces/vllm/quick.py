"""The common chat request, checked in one pass: what load generators send, thousands a second.

Anything that is not plain (another field, another type, a limit that is reached, any error) is left
to ``protocol``, which knows all the rules; what is answered here is what it would answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pydantic_core

from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.text import template

_FIELDS = frozenset(
    {
        *("model", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options"),
        *("temperature", "top_p", "ignore_eos"),
    }
)
_ROLES = frozenset({"user", "system", "assistant"})
_MESSAGE = frozenset({"role", "content"})
_OPTIONS = frozenset({"include_usage", "continuous_usage_stats"})


def chat(raw: bytes, content_type: str, served: Served) -> Call | None:
    """The checked request; None if it is not a common one."""
    launched = dict(served.options)
    if content_type != "application/json" or "reasoning-parser" in launched:
        return None
    try:
        body = pydantic_core.from_json(raw)
    except ValueError:
        return None
    if type(body) is not dict or not body.keys() <= _FIELDS or not _plain(body):
        return None
    if body.get("model", served.name) != served.name:
        return None
    said = _said(body.get("messages"))
    if said is None or sum([len(turn.content) for turn in said]) > served.max_model_tokens:
        return None
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    ids = template.encode(said)
    if not 1 <= (1 if limit is None else limit) <= served.max_model_tokens - len(ids):
        return None
    options = body.get("stream_options") or {}
    usage = options.get("include_usage", False)
    return Call(
        chat=True,
        prompts=(Prompt(len(ids), "", tuple(ids)),),
        max_tokens=limit,
        ignore_eos=body.get("ignore_eos", False),
        stream=body.get("stream", False),
        include_usage=usage,
        continuous_usage=usage and options.get("continuous_usage_stats", False),
        tells_cached=launched.get("enable-prompt-tokens-details", "false") != "false",
    )


def _plain(body: Mapping[str, Any]) -> bool:
    """Whether all but model and messages are of their own types, and within their bounds."""
    for name in ("max_tokens", "max_completion_tokens"):
        if name in body and type(body[name]) is not int:
            return False
    for name in ("stream", "ignore_eos"):
        if name in body and type(body[name]) is not bool:
            return False
    temperature, top_p = body.get("temperature", 1.0), body.get("top_p", 1.0)
    if type(temperature) not in (int, float) or not 0 <= temperature <= 2:
        return False
    if type(top_p) not in (int, float) or not 0 < top_p <= 1:
        return False
    if "stream_options" not in body:
        return True
    options = body["stream_options"]
    return (
        body.get("stream") is True
        and type(options) is dict
        and options.keys() <= _OPTIONS
        and all(type(value) is bool for value in options.values())
    )


def _said(messages: object) -> Sequence[template.Message] | None:
    """The messages, if each is a text by one of the common roles."""
    if type(messages) is not list or not messages:
        return None
    said = []
    for message in messages:
        if type(message) is not dict or message.keys() != _MESSAGE:
            return None
        role, content = message["role"], message["content"]
        if type(content) is not str or type(role) is not str or role not in _ROLES:
            return None
        said.append(template.Message(role, content))
    return said
