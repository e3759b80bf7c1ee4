"""What ``trtllm-serve`` checks of a request once its body meets the schema."""

import math
from collections.abc import Mapping
from typing import Any

from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.tensorrt_llm import bodies
from servelab.engine.text import vocabulary, writing

BIAS_LIMIT = 100.0
# A choice: the real server takes any number, and dies of some.
MOST_ANSWERS = 16_384


def sampling(request: bodies.Common, max_tokens: int | None) -> None:
    """Raises Refusal."""
    top_p = 1.0 if request.top_p is None else request.top_p
    temperature = 1.0 if request.temperature is None else request.temperature
    if not 0 <= top_p <= 1:
        raise Refusal(f"require 0 <= top_p <= 1, got top_p={top_p}")
    if request.top_k < 0:
        raise Refusal(f"require top_k >= 0, got top_k={request.top_k}")
    if not temperature >= 0:
        raise Refusal(f"require temperature >= 0, got temperature={temperature}")
    if not 0 <= request.min_p <= 1:
        raise Refusal(f"require 0 <= min_p <= 1, got min_p={request.min_p}")
    _counts(request, max_tokens)
    _bias(request.logit_bias)


def _counts(request: bodies.Common, max_tokens: int | None) -> None:
    best_of = request.best_of or request.n
    if request.n < 1:
        raise Refusal(f"require n >= 1, got n={request.n}")
    if best_of < request.n:
        raise Refusal(f"best_of ({best_of}) cannot be less than n ({request.n})")
    # A temperature of 0 alone does not count as greedy here.
    if best_of > 1 and request.top_k == 1 and request.top_p == 0:
        raise Refusal(
            "Greedy decoding in the LLM API does not allow multiple returns. Please set to "
            f"best_of=1, got best_of={best_of}."
        )
    if request.use_beam_search:
        raise Refusal("beam search is not enabled: max_beam_width is 1")
    if max_tokens is not None and max_tokens < 1:
        raise Refusal(f"require max_tokens >= 1, got max_tokens={max_tokens}")


def _bias(bias: Mapping[str, float] | None) -> None:
    for name, value in (bias or {}).items():
        try:
            token = int(name)
        except ValueError:
            raise Refusal(
                f"Invalid logit_bias key '{name}': must be a valid integer token ID"
            ) from None
        if not 0 <= token < vocabulary.VOCABULARY_SIZE:
            most = vocabulary.VOCABULARY_SIZE
            raise Refusal(f"Token ID {token} out of vocabulary range [0, {most})")
        if not math.isfinite(value):
            raise Refusal(f"logit_bias value for token ID {token} must be finite")
        if abs(value) > BIAS_LIMIT:
            limits = f"[{-BIAS_LIMIT:g}, {BIAS_LIMIT:g}]"
            raise Refusal(f"logit_bias value for token ID {token} must be in {limits}")


def chat(request: bodies.ChatRequest, *, guided: bool, parses: bool) -> None:
    """What is looked at of a chat alone. Raises Refusal."""
    if request.chat_template is not None:
        raise Refusal(
            "chat_template cannot be supplied per request unless request-level chat templates are "
            "enabled at server startup."
        )
    if request.tool_choice == "required":
        raise Refusal("tool_choice='required' is not supported for this model.")
    if isinstance(request.tool_choice, bodies.ToolChoice) and not (guided and parses):
        missing = "--tool_parser" if guided else "a guided decoding backend"
        raise Refusal(
            f"tool_choice with a named function requires the server to be started with {missing}."
        )


def write(chosen: bodies.ResponseFormat | None) -> writing.Write | None:
    """How to write an answer that must be of a kind; None: in words. Raises Refusal."""
    if chosen is None or chosen.type in ("text", "structural_tag"):
        return None
    if chosen.type == "json_object":
        return writing.any_object()
    name = "schema" if chosen.type == "json" else chosen.type
    given: Any = chosen.schema_ if name == "schema" else getattr(chosen, name)
    if given is None:
        raise Refusal(
            f"response_format.{name} is required for response_format.type == {chosen.type!r}, "
            "but got None."
        )
    if name == "json_schema":
        return writing.by_schema(given.get("schema", given))
    if name == "schema":
        return writing.by_schema(given)
    return writing.by_pattern(given) if name == "regex" else None


def answers(count: int) -> None:
    """So many at once. Raises Refusal."""
    if count > MOST_ANSWERS:
        raise Refusal(f"{count} answers are more than {MOST_ANSWERS} at once.")


def lengths(prompt_tokens: int, limit_tokens: int, batch_tokens: int, *, chunked: bool) -> None:
    """A prompt must fit a batch, and leave room for an answer. Raises Refusal."""
    if not chunked and prompt_tokens > batch_tokens:
        raise Refusal(
            f"The sum of prompt length ({prompt_tokens}), query length (0) should not exceed "
            f"max_num_tokens ({batch_tokens})"
        )
    room = limit_tokens - prompt_tokens
    if room <= 0:
        raise Refusal(
            f"`default_max_tokens` ({room}) must be greater than 0, `default_max_tokens` ({room}) "
            f"= max_seq_len ({limit_tokens}) - `splited_prompt_len` ({prompt_tokens}) - "
            "`query_token_len` (0)"
        )
