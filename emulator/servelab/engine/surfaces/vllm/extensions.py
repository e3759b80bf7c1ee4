"""What vLLM 0.33 checks of the fields that OpenAI's API does not have."""

from collections.abc import Sequence
from typing import Any, Protocol

from servelab.engine.calls import Served
from servelab.engine.surfaces.vllm import prompting, refusals
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import encoding

# What the way to the engine's process has room for.
LEAST_INT, MOST_INT = -(2**63), 2**64 - 1


class Truncating(Protocol):
    """How much of a prompt is kept, in tokens: None all, -1 what leaves room for an answer."""

    @property
    def truncate_prompt_tokens(self) -> int | None: ...

    @property
    def truncation_side(self) -> str | None: ...


class Extended(Protocol):
    """What a request passes on to extensions of the engine."""

    vllm_xargs: Any
    kv_transfer_params: Any
    ec_transfer_params: Any


class Engines(Protocol):
    """What only the engine itself checks."""

    bad_words: list[str]
    thinking_token_budget: int | None
    top_k: int | None
    stream_interval: int | None


def thinking_budget(value: object) -> int | None:
    """A budget of tokens for thoughts; -1 is none. Raises Refusal."""
    if value is None:
        return None
    if type(value) is not int or value < -1:
        message = "thinking_token_budget must be a whole number of tokens, or -1 for no limit."
        raise Refusal(message, param="thinking_token_budget")
    return None if value == -1 else value


def repetition(most_tokens: int, least_tokens: int, least_count: int) -> None:
    """Sizes of patterns that end an answer once repeated so often. Raises Refusal."""
    if not 0 <= least_tokens <= most_tokens:
        raise Refusal("repetition_detection needs 0 <= min_pattern_size <= max_pattern_size.")
    if most_tokens and least_count < 2:
        raise Refusal("repetition_detection needs a min_count of at least 2.")


def media(request: Any) -> None:
    """Nobody may change how images are prepared. Raises Refusal."""
    for name in ("mm_processor_kwargs", "media_io_kwargs"):
        if getattr(request, name, None):
            raise Refusal(f"This engine takes no {name} from a request.", param=name)


def check_truncation(request: Truncating, served: Served) -> None:
    """Refuse to keep more than the model takes. Raises Refusal."""
    wanted = request.truncate_prompt_tokens
    if wanted is not None and wanted > served.max_model_tokens:
        message = f"truncate_prompt_tokens must be at most {served.max_model_tokens}, not {wanted}."
        raise Refusal(message, param="truncate_prompt_tokens")


def kept(request: Truncating, served: Served) -> prompting.Kept:
    """What is kept of a prompt: its end, if no side is named."""
    tokens = request.truncate_prompt_tokens
    if tokens == -1:
        tokens = served.max_model_tokens - 1
    return prompting.Kept(tokens, end=request.truncation_side != "right")


def extra_arguments(request: Extended) -> None:
    """Whole numbers in what is passed on must not be wider than 64 bits. Raises Refusal."""
    passed = (request.vllm_xargs, request.kv_transfer_params, request.ec_transfer_params)
    level: list[Any] = [value for value in passed if value]
    while level:
        if any(isinstance(each, int) and not LEAST_INT <= each <= MOST_INT for each in level):
            message = f"Whole numbers must be from {LEAST_INT} to {MOST_INT}."
            raise Refusal(message, param="extra_args")
        level = [child for each in level for child in _children(each)]


def _children(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


def engine(request: Engines, served: Served) -> None:
    """What is refused where a stream has its headers already. Raises Refusal."""
    if not all(encoding.encode(word.lstrip()) for word in request.bad_words):
        message = "bad_words must hold texts of at least one token."
        raise Refusal(message, param="bad_words")
    thinks = served.has("reasoning-parser") or served.has("reasoning-config")
    if request.thinking_token_budget is not None and not thinks:
        raise Refusal("thinking_token_budget needs an engine with --reasoning-parser.")
    wide = (request.top_k or 0, request.stream_interval or 0)
    if max(wide) > MOST_INT:
        raise refusals.internal()
