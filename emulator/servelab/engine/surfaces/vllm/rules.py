"""What vLLM 0.33 checks of a request beside its schema, in vLLM's order.

Some checks read the body as it came, before the schema; the others read the sampling wishes after.
The last ones happen inside the engine: where an answer is streamed, its headers are out by then.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from servelab.engine.surfaces.vllm import refusals, tags
from servelab.engine.surfaces.vllm.refusals import Refusal
from servelab.engine.text import vocabulary

# The defaults of VLLM_MAX_N_SEQUENCES, VLLM_MAX_COMPLETION_PROMPTS, VLLM_MAX_STOP_STRINGS and
# --max-logprobs.
MAX_N = 16_384
MAX_PROMPTS = 1024
MAX_STOP_STRINGS = 4
MAX_LOGPROBS = 20
MAX_CACHE_SALT_CHARACTERS = 128

Raw = Mapping[str, Any]

# The fields that the checks of a body read. Most requests have none of them.
_CHECKED = frozenset(
    {
        *("add_generation_prompt", "continue_final_message", "tools", "tool_choice"),
        *("structured_outputs", "response_format", "stream_options", "cache_salt"),
        *("logprob_token_ids", "prompt_logprobs", "top_logprobs", "logprobs"),
    }
)
_MESSAGES = (list, str, Mapping)


def chat_body(body: Raw) -> None:
    """A chat request as it came. Raises Refusal."""
    messages = body.get("messages", [])
    if not isinstance(messages, _MESSAGES):
        raise Refusal("messages must be a list of messages.")
    if _CHECKED.isdisjoint(body):
        return
    generation_prompt(body)
    _tools(body)
    _structured(body, None)
    _beams(body)
    if body.get("logprob_token_ids") and not body.get("logprobs"):
        raise Refusal("logprob_token_ids needs logprobs: true.", param="logprob_token_ids")
    _count_fields(body, "top_logprobs")
    top = body.get("top_logprobs")
    if top is not None and (top == -1 or top > 0) and not body.get("logprobs"):
        raise Refusal("top_logprobs needs logprobs: true.", param="top_logprobs")
    _stream_options(body)
    _response_format(body)
    cache_salt(body)


def completion_body(body: Raw) -> None:
    """A text completion request as it came. Raises Refusal."""
    prompt = body.get("prompt")
    prompts = prompt if isinstance(prompt, list) else []
    if len(prompts) > MAX_PROMPTS and not all(isinstance(item, int) for item in prompts):
        message = f"prompt holds {len(prompts)} prompts; at most {MAX_PROMPTS} are allowed."
        raise Refusal(message, param="prompt")
    if prompt in (None, "") and body.get("prompt_embeds") in (None, []):
        raise no_prompt()
    if _CHECKED.isdisjoint(body):
        return
    _stream_options(body)
    _beams(body)
    if body.get("logprob_token_ids") and body.get("logprobs") is None:
        raise Refusal("logprob_token_ids needs logprobs.", param="logprob_token_ids")
    _count_fields(body, "logprobs")
    _structured(body, "structured_outputs")
    _response_format(body)
    cache_salt(body)


def no_prompt() -> Refusal:
    """Nothing to complete."""
    message = "prompt must be a text, token ids, or a list of these, and not empty."
    return Refusal(message, param="prompt")


def generation_prompt(body: Raw) -> None:
    """Two ways to end the prompt that exclude each other."""
    if body.get("continue_final_message") and body.get("add_generation_prompt"):
        raise Refusal(
            "continue_final_message and add_generation_prompt exclude each other: set one of them."
        )


def _beams(body: Raw) -> None:
    if body.get("use_beam_search") and body.get("logprob_token_ids"):
        message = "logprob_token_ids and use_beam_search exclude each other."
        raise Refusal(message, param="logprob_token_ids")


def _stream_options(body: Raw) -> None:
    if body.get("stream_options") and not body.get("stream"):
        message = "stream_options is allowed only with stream: true."
        raise Refusal(message, param="stream_options")


def _count_fields(body: Raw, name: str) -> None:
    """``prompt_logprobs`` and the field of that name: numbers, at least -1."""
    for field in ("prompt_logprobs", name):
        value = body.get(field)
        if value is not None and not isinstance(value, int | float):
            raise Refusal(f"{field} must be an integer.", param=field)
    wanted = body.get("prompt_logprobs")
    if wanted is not None and body.get("stream") and (wanted > 0 or wanted == -1):
        message = "prompt_logprobs is not available with stream: true."
        raise Refusal(message, param="prompt_logprobs")
    for field in ("prompt_logprobs", name):
        value = body.get(field)
        if value is not None and value < 0 and value != -1:
            raise Refusal(f"{field} must be at least 0, or -1 for all.", param=field)


def _structured(body: Raw, param: str | None) -> None:
    wanted = body.get("structured_outputs")
    if wanted is None:
        return
    if not isinstance(wanted, Mapping):
        raise refusals.internal()  # vLLM looks into it before it looks at it
    kinds = [name for name in ("json", "regex", "choice") if wanted.get(name) is not None]
    if len(kinds) > 1:
        raise Refusal(f"structured_outputs takes one of {', '.join(kinds)}.", param=param)
    choice = body.get("tool_choice", "none")
    if param is None and kinds and choice not in ("none", "auto", "required"):
        raise Refusal("structured_outputs and a named tool exclude each other.")
    if wanted.get("structural_tag") is not None:
        tags.check_text(wanted["structural_tag"], "structured_outputs")


def single_wish(given: Collection[str]) -> None:
    """One kind of constraint on the answer's text, and no more. Raises Refusal."""
    if len(given) > 1:
        raise Refusal(f"Only one of {', '.join(given)} may be wished.")
    if not given:
        raise Refusal("structured_outputs must hold a wish: leave it out.")


def _response_format(body: Raw) -> None:
    wanted = body.get("response_format")
    if not isinstance(wanted, Mapping):
        return
    kind = wanted.get("type")
    if kind == "json_schema" and wanted.get("json_schema") is None:
        message = "response_format of type json_schema needs the field json_schema."
        raise Refusal(message, param="response_format")
    if kind == "structural_tag":
        tags.check(wanted, "response_format")


def cache_salt(body: Raw) -> None:
    """What keeps a client's prompts apart in the prefix cache. Raises Refusal."""
    salt = body.get("cache_salt")
    if salt is None:
        return
    sound = isinstance(salt, str) and 0 < len(salt) <= MAX_CACHE_SALT_CHARACTERS
    if not sound or any(character in "@/\\\0" for character in salt):
        message = f"cache_salt must be a text of 1 to {MAX_CACHE_SALT_CHARACTERS} characters "
        raise Refusal(f"{message}without @, / and \\.", param="cache_salt")


def _tools(body: Raw) -> None:
    tools, choice = body.get("tools"), body.get("tool_choice")
    if tools == []:
        raise Refusal("tools must not be empty: leave it out.", param="tools")
    if choice is None or choice == "none":
        return
    if tools is None:
        raise Refusal("tool_choice needs tools.", param="tool_choice")
    if not isinstance(choice, Mapping):
        if choice not in ("auto", "required"):
            message = f"tool_choice must be none, auto, required or a function, not {choice!r}."
            raise Refusal(message, param="tool_choice")
        return
    function = choice.get("function")
    if not isinstance(function, Mapping):
        message = "tool_choice must hold a function with a name."
        raise Refusal(message, param="tool_choice.function")
    name = function.get("name")
    if not isinstance(name, str) or not name:
        message = "tool_choice.function must hold a name."
        raise Refusal(message, param="tool_choice.function.name")
    if name not in _tool_names(tools):
        message = f"tool_choice names {name!r}, which is none of the tools."
        raise Refusal(message, param="tool_choice")


def _tool_names(tools: object) -> list[object]:
    """vLLM fails on a tool without a name where it looks for one."""
    try:
        return [tool["function"]["name"] for tool in tools]  # type: ignore[attr-defined]
    except (KeyError, IndexError):
        raise refusals.internal() from None
    except TypeError:
        raise Refusal("tools must be a list of functions.") from None


class Wishes(Protocol):
    """What a client may wish for the sampling; None: the default."""

    presence_penalty: float | None
    frequency_penalty: float | None
    repetition_penalty: float | None
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    min_tokens: int
    stop: str | list[str] | None
    bad_words: list[str]
    stop_token_ids: list[int] | None
    allowed_token_ids: list[int] | None
    logit_bias: dict[str, float] | None
    prompt_logprobs: int | None


def sampling(request: Wishes, n: int, max_tokens: int) -> None:
    """What vLLM's SamplingParams refuses. Raises Refusal."""
    _bias_keys(request.logit_bias)
    if not 1 <= n <= MAX_N:
        raise Refusal(f"n must be from 1 to {MAX_N}, not {n}.")
    _within("presence_penalty", request.presence_penalty, -2, 2)
    _within("frequency_penalty", request.frequency_penalty, -2, 2)
    repetition = request.repetition_penalty
    if repetition is not None and not 0 < repetition < math.inf:
        raise Refusal(f"repetition_penalty must be over 0, not {repetition}.")
    _within("temperature", request.temperature, 0, 2, param="temperature")
    if request.top_p is not None and not 0 < request.top_p <= 1:
        message = f"top_p must be over 0 and at most 1, not {request.top_p}."
        raise Refusal(message, param="top_p")
    if request.top_k is not None and request.top_k < -1:
        raise Refusal(f"top_k must be at least 1, or 0 for all, not {request.top_k}.")
    _within("min_p", request.min_p, 0, 1)
    if max_tokens < 1:
        raise Refusal(f"max_tokens must be at least 1, not {max_tokens}.", param="max_tokens")
    if not 0 <= request.min_tokens <= max_tokens:
        raise Refusal(f"min_tokens must be from 0 to {max_tokens}, not {request.min_tokens}.")
    if request.stop == "" or (isinstance(request.stop, list) and "" in request.stop):
        raise Refusal("stop must not hold an empty text.")
    if "" in request.bad_words:
        raise Refusal("bad_words must not hold an empty text.")
    if request.temperature is not None and request.temperature < 1e-5 and n > 1:
        raise Refusal(f"n must be 1 at temperature 0, not {n}.")


def engine(request: Wishes, logprobs: int | None, prompt_ids: Sequence[Sequence[int]]) -> None:
    """What the engine itself refuses, where a stream has its headers already. Raises Refusal."""
    for name, wanted in (("logprobs", logprobs), ("prompt_logprobs", request.prompt_logprobs)):
        if wanted and not 0 <= wanted <= MAX_LOGPROBS:
            message = f"{name} must be at most {MAX_LOGPROBS}, not {wanted}."
            raise Refusal(message, param=name)
    known("stop_token_ids", request.stop_token_ids or ())
    known("logit_bias", [int(token) for token in request.logit_bias or ()])
    if request.allowed_token_ids == []:
        message = "allowed_token_ids must not be empty: leave it out."
        raise Refusal(message, param="allowed_token_ids")
    known("allowed_token_ids", request.allowed_token_ids or ())
    for ids in prompt_ids:
        known_prompt(ids)


def known_prompt(ids: Sequence[int]) -> None:
    """Refuse a prompt of nothing, or of ids that the vocabulary does not have. Raises Refusal."""
    if not ids:
        raise Refusal("The prompt must not be empty.")
    known(None, ids)


def known(name: str | None, ids: Sequence[int]) -> None:
    """Refuse ids that the vocabulary does not have. Raises Refusal."""
    if not ids or 0 <= min(ids) <= max(ids) < vocabulary.VOCABULARY_SIZE:
        return
    last = vocabulary.VOCABULARY_SIZE - 1
    token = next(token for token in ids if not 0 <= token <= last)
    told = f"Token id {token} is not in the vocabulary, which ends at {last}."
    raise Refusal(told, param=name)


def _bias_keys(bias: Mapping[str, float] | None) -> None:
    for token in bias or ():
        try:
            int(token)
        except ValueError:
            message = f"logit_bias must be by token id, not by {token!r}."
            raise Refusal(message, param="logit_bias") from None


def _within(
    name: str, value: float | None, low: float, high: float, param: str | None = None
) -> None:
    if value is not None and not low <= value <= high:
        raise Refusal(f"{name} must be from {low} to {high}, not {value}.", param=param)
