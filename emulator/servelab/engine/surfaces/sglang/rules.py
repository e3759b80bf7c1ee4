"""What SGLang 0.5 checks of a request once its body meets the schema."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from servelab.engine.calls import Served
from servelab.engine.surfaces.refusing import Refusal
from servelab.engine.surfaces.sglang import bodies, refusals
from servelab.engine.text import vocabulary, writing

PRIORITIES = "enable-priority-scheduling"
MAX_STOPS = 32
MAX_STOP_REGEX_BYTES = 256
# A choice: the real server takes any number, and dies of some.
MOST_ANSWERS = 16_384
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample, in the engine's own terms. ``max_tokens`` None: as many as there is room."""

    max_tokens: int | None = 128
    min_tokens: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    min_p: float = 0.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    repetition_penalty: float = 1.0
    n: int = 1
    stop: str | Sequence[str] | None = None
    stop_token_ids: Sequence[int] | None = None
    stop_regex: str | Sequence[str] | None = None
    grammars: Mapping[str, Any] = field(default_factory=dict)  # what the answer must be
    ignore_eos: bool = False
    no_stop_trim: bool = False
    logit_bias: Mapping[str, float] | None = None
    seed: int | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that stop it."""
        return texts(self.stop)


def texts(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """One text or many, as many; empty ones mean nothing."""
    return tuple(text for text in ([given] if isinstance(given, str) else given or ()) if text)


def sampling(asked: Sampling) -> None:
    """Raises Refusal."""
    _stops(asked)
    if not math.isfinite(asked.temperature) or asked.temperature < 0:
        raise _bad("temperature must be a non-negative finite number", asked.temperature)
    if not 0 < asked.top_p <= 1:
        raise _bad("top_p must be in (0, 1]", asked.top_p)
    if not 0 <= asked.min_p <= 1:
        raise _bad("min_p must be in [0, 1]", asked.min_p)
    # A temperature of next to nothing means the likeliest token, whatever top_k says.
    if asked.top_k < 1 and asked.top_k != -1 and asked.temperature >= 1e-6:
        raise _bad("top_k must be -1 (disable) or at least 1", asked.top_k)
    for name in ("frequency_penalty", "presence_penalty"):
        if not -2 <= getattr(asked, name) <= 2:
            raise _bad(f"{name} must be in [-2, 2]", getattr(asked, name))
    if not 0 < asked.repetition_penalty <= 2:
        raise _bad(
            "repetition_penalty must be in (0, 2] (1.0 = no penalty)", asked.repetition_penalty
        )
    _lengths(asked)
    _bias(asked.logit_bias)
    if asked.seed is not None and not INT64_MIN <= asked.seed <= INT64_MAX:
        raise _bad("sampling_seed must be in [-2**63, 2**63 - 1]", asked.seed)
    if len(asked.grammars) > 1:
        raise Refusal("Only one of json_schema, regex, ebnf, or structural_tag can be set.")


def _bad(rule: str, value: object) -> Refusal:
    return Refusal(f"{rule}, got {value}.")


def _stops(asked: Sampling) -> None:
    stops = 0 if asked.stop is None or isinstance(asked.stop, str) else len(asked.stop)
    if stops > MAX_STOPS:
        raise Refusal(f"at most {MAX_STOPS} stop strings are allowed, got {stops}")
    patterns = [asked.stop_regex] if isinstance(asked.stop_regex, str) else asked.stop_regex or []
    if len(patterns) > MAX_STOPS:
        raise Refusal(f"at most {MAX_STOPS} stop_regex patterns are allowed, got {len(patterns)}")
    for pattern in patterns:
        size = len(pattern.encode(errors="replace"))
        if size > MAX_STOP_REGEX_BYTES:
            raise Refusal(f"stop_regex is {size} bytes, over the {MAX_STOP_REGEX_BYTES}-byte limit")


def _lengths(asked: Sampling) -> None:
    least, most = asked.min_tokens, asked.max_tokens
    if least < 0:
        raise _bad("min_new_tokens must be in [0, max_new_tokens]", least)
    if most is None:
        return
    if most < 0:
        raise _bad("max_new_tokens must be at least 0", most)
    if least > most:
        raise _bad(f"min_new_tokens must be in [0, max_new_tokens({most})]", least)


def _bias(bias: Mapping[str, float] | None) -> None:
    for name in bias or ():
        try:
            token = int(name)
        except ValueError as error:
            raise Refusal(str(error)) from None
        if not 0 <= token < vocabulary.VOCABULARY_SIZE:
            last = vocabulary.VOCABULARY_SIZE - 1
            raise Refusal(f"logit_bias must has keys in [0, {last}], got {token}.")


def write(grammars: Mapping[str, Any]) -> writing.Write | None:
    """How to write an answer that must be of a kind; None: in words. Raises Refusal."""
    schema, pattern = grammars.get("json_schema"), grammars.get("regex")
    if schema is not None:
        try:
            return writing.by_schema(json.loads(schema) if isinstance(schema, str) else schema)
        except (ValueError, RecursionError):
            raise Refusal("Failed to compile json_schema grammar.") from None
    if pattern is None:
        return None
    if "\0" in pattern:
        raise Refusal("Failed to compile regex grammar.")
    return writing.by_pattern(pattern)


def answers(count: int) -> None:
    """So many at once. Raises Refusal."""
    if count > MOST_ANSWERS:
        raise Refusal(f"{count} answers are more than {MOST_ANSWERS} at once.")


def lengths(prompt_tokens: int, max_tokens: int | None, limit_tokens: int) -> None:
    """A prompt, and what is asked of it, must fit the model's length. Raises Refusal."""
    if prompt_tokens >= limit_tokens:
        raise Refusal(
            f"The input ({prompt_tokens} tokens) is longer than the model's context length "
            f"({limit_tokens} tokens)."
        )
    if max_tokens is not None and prompt_tokens + max_tokens > limit_tokens:
        raise Refusal(
            f"Requested token count exceeds the model's maximum context length of {limit_tokens} "
            f"tokens. You requested a total of {prompt_tokens + max_tokens} tokens: "
            f"{prompt_tokens} tokens from the input messages and {max_tokens} tokens for the "
            "completion. Please reduce the number of tokens in the input messages or the "
            "completion to fit within the limit."
        )


def chat(request: bodies.ChatRequest, limit_tokens: int) -> None:
    """What is looked at before anything else of a chat. Raises Refusal."""
    if not request.messages:
        raise Refusal("Messages cannot be empty.")
    if "chat_template" in (request.chat_template_kwargs or {}):
        raise Refusal(
            "Request-supplied chat_template is not allowed. Start the server with "
            "--trust-request-chat-template to permit it."
        )
    _tools(request)
    most = request.max_completion_tokens or request.max_tokens
    if most and most > limit_tokens:
        raise Refusal(
            f"max_completion_tokens is too large: {most}."
            f"This model supports at most {limit_tokens} completion tokens."
        )
    schema_given(request.response_format)


def priority(value: int | None, served: Served) -> None:
    """A priority must be a number of 64 bits, and may be refused altogether. Raises Refusal."""
    if value is None:
        return
    if not INT64_MIN <= value <= INT64_MAX:
        raise Refusal("priority must be a number of 64 bits, with a sign.")
    if served.has("abort-on-priority-when-disabled") and not served.has(PRIORITIES):
        raise refusals.unavailable(
            "Using priority is disabled for this server. Please send a new request without a "
            "priority."
        )


def turn(value: int | None, served: Served) -> int:
    """Lower ones are served first; who names none is last."""
    if value is None:
        return INT64_MAX
    return value if served.has("schedule-low-priority-values-first") else -value


def _tools(request: bodies.ChatRequest) -> None:
    tools, choice = request.tools or [], request.tool_choice
    if choice == "required" and not tools:
        raise Refusal("Tools cannot be empty if tool choice is set to required.")
    if isinstance(choice, bodies.ToolChoice):
        if not tools:
            raise Refusal("Tools cannot be empty if tool choice is set to a specific tool.")
        if choice.function.name not in [tool.function.name for tool in tools]:
            raise Refusal(f"Tool '{choice.function.name}' not found in tools list.")
    for index, tool in enumerate(tools):
        fault = schema_fault(tool.function.parameters)
        if fault is not None:
            raise Refusal(f"Tool {index} function has invalid 'parameters' schema: {fault}")


def schema_given(chosen: object) -> None:
    """A JSON schema is wanted and not given. Raises Refusal."""
    if not isinstance(chosen, bodies.ResponseFormat) or chosen.type != "json_schema":
        return
    if chosen.json_schema is None or chosen.json_schema.json_schema is None:
        raise Refusal("schema_ is required for json_schema response format request.")


def schema_fault(schema: Any, depth: int = 0) -> str | None:
    """What is wrong with a JSON schema, if something plainly is."""
    if schema is None or isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return f"{schema!r} is not of type 'object', 'boolean'"
    if depth > 100:
        return "it is too deeply nested"
    kind = schema.get("type", "object")
    if not all(isinstance(each, str) for each in (kind if isinstance(kind, list) else [kind])):
        return f"{kind!r} is not valid under any of the given schemas"
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return f"{properties!r} is not of type 'object'"
    if not isinstance(schema.get("required", []), list):
        return f"{schema['required']!r} is not of type 'array'"
    inner = [*properties.values(), schema.get("items")]
    return next((found for each in inner if (found := schema_fault(each, depth + 1))), None)
