"""Prompts: texts and token ids, and what is too long before it is looked at."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from servelab.engine.calls import Prompt, Served
from servelab.engine.surfaces.vllm import refusals, rules
from servelab.engine.text import encoding

# Of Llama 3 and of Qwen; vLLM takes a text for too long by its characters from there on.
LONGEST_TOKEN_CHARACTERS = 128
# So many token ids are looked at before the schema, which takes a hundred times as long for each.
MANY_IDS = 1024


class Kept(NamedTuple):
    """How many tokens of a prompt are kept, None all, and whether of its end or its beginning."""

    tokens: int | None
    end: bool = False


ALL = Kept(None)


def without_ids(document: Any) -> tuple[Any, list[Any] | None]:
    """A document with few of its prompt's token ids if they are many and in order, and the prompt.

    A schema looks at each for far longer than it takes to see that all are whole numbers.
    """
    prompt = document.get("prompt") if isinstance(document, dict) else None
    if not isinstance(prompt, list):
        return document, None
    if _are_ids(prompt):
        return document | {"prompt": prompt[:1]}, prompt
    if all(isinstance(each, list) and _are_ids(each) for each in prompt):
        return document | {"prompt": [each[:1] for each in prompt]}, prompt
    return document, None


def _are_ids(values: list[Any]) -> bool:
    return len(values) > MANY_IDS and set(map(type, values)) == {int} and min(values) >= 0


def of(prompt: Any, served: Served, kept: Kept = ALL, *, told: bool = True) -> tuple[Prompt, ...]:
    """The prompts of a text completion: a text, token ids, or a list of either. Raises Refusal.

    ``told``: the text of what is not said as one is wanted as well.
    """
    if not prompt:
        raise rules.no_prompt()
    single = isinstance(prompt, str) or isinstance(prompt[0], int)
    return tuple(
        _prompt(each, served, kept, told=told) for each in ([prompt] if single else prompt)
    )


def _prompt(said: str | list[int], served: Served, kept: Kept, *, told: bool) -> Prompt:
    if isinstance(said, str):
        check_text(said)
        if kept.tokens is None:
            check_characters(len(said), served)
    whole = encoding.encode(said) if isinstance(said, str) else said
    ids = cut(whole, kept)
    if isinstance(said, str) and ids is whole:
        return Prompt(len(ids), said, tuple(ids))
    return Prompt(len(ids), encoding.decode(ids) if told else "", tuple(ids))


def cut(ids: Sequence[int], kept: Kept) -> Sequence[int]:
    """What is kept of a prompt."""
    tokens = kept.tokens
    if tokens is None or tokens >= len(ids):
        return ids
    return ids[len(ids) - tokens :] if kept.end else ids[:tokens]


def check_text(text: str) -> None:
    """Refuse a text that is none in Unicode. Raises Refusal."""
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "The prompt holds one half of a surrogate pair, which is no character."
        raise refusals.Refusal(message) from None


def check_length(prompt: Prompt, served: Served) -> None:
    """Refuse a prompt of more tokens than the model takes. Raises Refusal."""
    if prompt.tokens > served.max_model_tokens:
        raise refusals.too_long(prompt.tokens, served.max_model_tokens)


def check_characters(characters: int, served: Served) -> None:
    """Refuse a text that must be too long before it is encoded. Raises Refusal.

    This bounds the time that encoding takes by the model's length.
    """
    most = served.max_model_tokens
    if characters > most * LONGEST_TOKEN_CHARACTERS:
        raise refusals.too_many_characters(characters, most)
    if characters > most * encoding.max_token_characters():
        raise refusals.too_long(most + 1, most)
