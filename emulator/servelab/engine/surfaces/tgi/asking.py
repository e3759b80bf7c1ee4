"""From a body to a checked call: the rules of the router's validation, in its order."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from servelab.engine.calls import Call, Prompt
from servelab.engine.surfaces.tgi import bodies, refusals
from servelab.engine.surfaces.tgi.limits import Limits
from servelab.engine.text import encoding, template, writing

# What is asked of the shards at once; a longer answer goes on from there.
CHUNK_TOKENS = 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """A checked request: the call, and what its answer is to tell."""

    call: Call
    inputs: tuple[str, ...]
    details: bool = False
    full_text: bool = False
    prefill: bool = False
    top_n_tokens: int = 0
    seed: int | None = None  # told where the answer is sampled

    @property
    def characters(self) -> int:
        """Of all inputs."""
        return sum(map(len, self.inputs))


@dataclass(frozen=True, slots=True)
class Input:
    """What the model gets: a text, or a chat in its template with the tokens of that."""

    text: str
    ids: tuple[int, ...] = ()

    def prompt(self) -> Prompt:
        """Its tokens counted."""
        if self.ids:
            return Prompt(len(self.ids), self.text, self.ids)
        return Prompt(encoding.count(self.text) or 1, self.text)


def check(
    inputs: Sequence[Input],
    parameters: Mapping[str, Any],
    limits: Limits,
    *,
    seed: int,
    chat: bool = False,
    stream: bool = False,
    write: writing.Write | None = None,
) -> Asked:
    """The checked request; ``seed`` where the client gave none. Raises Refusal."""
    best_of = parameters["best_of"]
    best_of = 1 if best_of is None else best_of
    if stream and best_of != 1:
        raise refusals.invalid("`best_of` != 1 is not supported when streaming tokens")
    if stream and parameters["decoder_input_details"]:
        raise refusals.invalid(
            "`decoder_input_details` == true is not supported when streaming tokens"
        )
    if best_of > 1 and best_of > limits.best_of:
        raise refusals.invalid(_best_of(limits.best_of, best_of))
    _check_sampling(parameters, best_of)
    _check_counts(parameters, limits, best_of)
    prompts = tuple(_checked(given, parameters, limits) for given in inputs)
    wanted = parameters["max_new_tokens"]
    seed = seed if parameters["seed"] is None else parameters["seed"]
    call = Call(
        chat=chat,
        prompts=prompts,
        n=max(1, best_of),
        max_tokens=wanted,
        stream=stream,
        seed=seed,
        stop=tuple(text for text in parameters["stop"] if text),
        include_stop=True,
        write=write or _written(parameters["grammar"]),
    )
    return Asked(
        call,
        tuple(given.text for given in inputs),
        details=parameters["details"] or parameters["decoder_input_details"],
        full_text=bool(parameters["return_full_text"]),
        prefill=parameters["decoder_input_details"] and limits.prefill_logprobs,
        top_n_tokens=parameters["top_n_tokens"] or 0,
        seed=seed if _samples(parameters) else None,
    )


def _best_of(limit: int, given: int) -> str:
    if limit == 1:
        return "`best_of` != 1 is not allowed for this endpoint"
    return f"`best_of` must be > 0 and <= {limit}. Given: {given}"


def _samples(parameters: Mapping[str, Any]) -> bool:
    names = ("temperature", "top_k", "top_p", "typical_p")
    return parameters["do_sample"] or any(parameters[name] is not None for name in names)


def _check_sampling(parameters: Mapping[str, Any], best_of: int) -> None:
    if best_of > 1 and not _samples(parameters):
        raise refusals.invalid("you must use sampling when `best_of` is > 1")
    for name in ("temperature", "repetition_penalty"):
        if parameters[name] is not None and not parameters[name] > 0:
            raise refusals.invalid(f"`{name}` must be strictly positive")
    penalty = parameters["frequency_penalty"]
    if penalty is not None and not -2 <= penalty <= 2:
        raise refusals.invalid("`frequency_penalty` must be >= -2.0 and <= 2.0")
    for name in ("top_p", "typical_p"):
        if parameters[name] is not None and not 0 < parameters[name] < 1:
            raise refusals.invalid(f"`{name}` must be > 0.0 and < 1.0")
    if parameters["top_k"] is not None and parameters["top_k"] <= 0:
        raise refusals.invalid("`top_k` must be strictly positive")


def _check_counts(parameters: Mapping[str, Any], limits: Limits, best_of: int) -> None:
    if parameters["max_new_tokens"] == 0:
        raise refusals.invalid("`max_new_tokens` must be strictly positive")
    stops = len(parameters["stop"])
    if stops > limits.stop_sequences:
        most = limits.stop_sequences
        raise refusals.invalid(f"`stop` supports up to {most} stop sequences. Given: {stops}")
    if parameters["seed"] is not None and best_of > 1:
        raise refusals.invalid("`seed` must not be set when `best_of` > 1")
    top = parameters["top_n_tokens"] or 0
    if top > limits.top_n_tokens:
        most = limits.top_n_tokens
        raise refusals.invalid(f"`top_n_tokens` must be >= 0 and <= {most}. Given: {top}")


def _checked(given: Input, parameters: Mapping[str, Any], limits: Limits) -> Prompt:
    if not given.text:
        raise refusals.invalid("`inputs` cannot be empty")
    truncate = parameters["truncate"]
    if truncate is not None and not 0 < truncate <= limits.input_tokens:
        raise refusals.invalid(
            f"`truncate` must be strictly positive and less than {limits.input_tokens}. "
            f"Given: {truncate}"
        )
    prompt = given.prompt()
    if truncate is not None and prompt.tokens > truncate:
        ids = tuple(prompt.encoded()[-truncate:])
        prompt = Prompt(len(ids), encoding.decode(ids), ids)
    wanted = parameters["max_new_tokens"]
    room = max(0, limits.total_tokens - prompt.tokens)
    at_once = min(room if wanted is None else wanted, CHUNK_TOKENS)
    if prompt.tokens + at_once > limits.total_tokens:
        raise refusals.invalid(
            f"`inputs` tokens + `max_new_tokens` must be <= {limits.total_tokens}. "
            f"Given: {prompt.tokens} `inputs` tokens and {at_once} `max_new_tokens`"
        )
    if prompt.tokens > limits.input_tokens:
        raise refusals.invalid(
            f"`inputs` must have less than {limits.input_tokens} tokens. Given: {prompt.tokens}"
        )
    _check_grammar(parameters["grammar"], limits)
    return prompt


def _check_grammar(grammar: Mapping[str, Any] | None, limits: Limits) -> None:
    if grammar is None:
        return
    if not limits.grammars:
        raise refusals.invalid("grammar is not supported")
    value = _value(grammar)
    if grammar["type"] == "regex" or isinstance(value, str):
        return
    if not isinstance(value, dict):
        raise refusals.invalid("grammar is not supported")
    if "properties" not in value:
        raise refusals.invalid("grammar is not valid: Grammar must have a 'properties' field")


def _value(grammar: Mapping[str, Any]) -> Any:
    value = grammar["value"]
    if grammar["type"] == "json_schema" and isinstance(value, dict):
        return value.get("schema")
    return value


def _written(grammar: Mapping[str, Any] | None) -> writing.Write | None:
    """How the answer is written; None: in words, as where the grammar cannot be read."""
    if grammar is None:
        return None
    value = _value(grammar)
    if grammar["type"] == "regex":
        return writing.by_pattern(value)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return writing.by_schema(value)


def templated(
    messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()
) -> Input:
    """A chat in its template."""
    functions = [
        template.Function(each["name"], each["description"], each["arguments"])
        for each in (tool["function"] for tool in tools)
    ]
    ids = template.encode([_turn(message) for message in messages], functions)
    return Input(encoding.decode(ids), tuple(ids))


def _turn(message: Mapping[str, Any]) -> template.Message:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    called = tuple(
        template.Called(call["name"], json.dumps(call["arguments"], ensure_ascii=False))
        for call in calls
    )
    return template.Message(message["role"], _said(message), called)


def _said(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(
        part["text"] if part["type"] == "text" else f"![]({part['image_url']['url']})"
        for part in content or ()
    )


def chat_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a chat stands for."""
    penalty = body["presence_penalty"]
    return _openai_parameters(body) | {
        "repetition_penalty": None if penalty is None else penalty + 2.0,
        "top_n_tokens": body["top_logprobs"],
        "grammar": body["response_format"],
    }


def completion_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a text completion stands for."""
    return _openai_parameters(body) | {
        "repetition_penalty": body["repetition_penalty"],
        "decoder_input_details": not body["stream"],
    }


def _openai_parameters(body: Mapping[str, Any]) -> dict[str, Any]:
    greedy = body["temperature"] == 0
    return bodies.parameters(
        temperature=None if greedy else body["temperature"],
        do_sample=not greedy,
        frequency_penalty=body["frequency_penalty"],
        top_p=body["top_p"],
        max_new_tokens=body["max_tokens"],
        stop=body["stop"] or [],
        details=True,
        seed=body["seed"],
    )
