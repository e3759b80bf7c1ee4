"""Whether a model thinks before it speaks, as its ``--reasoning-parser`` and a request have it."""

from collections.abc import Mapping
from typing import Any, Protocol

from servelab.engine.calls import Served
from servelab.engine.replying import Choice, Reply
from servelab.engine.text import thoughts

THINK = ("<think>", "</think>")
# What stands around thoughts, by the parser that looks for it. An empty mark: the chat template
# has opened them already, and vLLM counts no tokens of thoughts that it does not see begin.
_MARKS: Mapping[str, tuple[str, str]] = {
    "deepseek_r1": ("", "</think>"),
    "step3": ("", "</think>"),
    "cohere_command3": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "mistral": ("[THINK]", "[/THINK]"),
    "seed_oss": ("<seed:think>", "</seed:think>"),
    "granite": ("Here is my thought process:", "Here is my response:"),
}
# Models that think only where a request says so.
_WHEN_TOLD = frozenset({"deepseek_v3", "deepseek_v4", "deepseek_v41", "granite"})
_SWITCHES = ("enable_thinking", "thinking")


class Asked(Protocol):
    """What a request says of thoughts."""

    chat_template_kwargs: Any
    include_reasoning: bool


def wanted(request: Asked, served: Served, effort: str | None = None) -> thoughts.Thinks | None:
    """How the model thinks, if it does."""
    parser = dict(served.options).get("reasoning-parser", "")
    if not parser or effort == "none":
        return None
    given = request.chat_template_kwargs or {}
    switched = [bool(given[name]) for name in _SWITCHES if name in given]
    thinks = all(switched) if switched else parser not in _WHEN_TOLD
    if not thinks:
        return None
    marks = _MARKS.get(parser, THINK)
    budget: int | None = getattr(request, "thinking_token_budget", None)
    return thoughts.Thinks(marks, bool(marks[0]), budget, request.include_reasoning)


def split(choice: Choice) -> tuple[str | None, str | None]:
    """What a choice thought, and what it said; None for nothing."""
    assert isinstance(choice.answer, thoughts.Thinking)
    thought, said = choice.answer.split(choice.text)
    return thought or None, said or None


def usage(reply: Reply) -> dict[str, Any]:
    """The part of usage that tells of thoughts, if the engine looks for those."""
    if reply.call.thinks is None:
        return {}
    return {"completion_tokens_details": {"reasoning_tokens": tokens(reply)}}


def tokens(reply: Reply) -> int:
    """How many of all tokens were thoughts that vLLM saw begin."""
    if reply.call.thinks is None or not reply.call.thinks.counted:
        return 0
    return sum(
        min(choice.sent + choice.pending, choice.answer.thought_tokens)
        for choice in reply.choices
        if isinstance(choice.answer, thoughts.Thinking)
    )
