"""From a body to a checked request, as vLLM 0.33 checks it."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.calls import Call, Calling, Prompt, Served
from servelab.engine.surfaces.vllm import (
    bodies,
    embedding_bodies,
    extensions,
    guided,
    messages,
    prompting,
    quick,
    reading,
    refusals,
    rules,
    thinking,
    tokenizing,
    tools,
)
from servelab.engine.text import dialects, encoding, template, writing


def parse_chat(raw: bytes, content_type: str, served: Served) -> Call:
    """A chat request. Raises Refusal."""
    return quick.chat(raw, content_type, served) or parse_any_chat(raw, content_type, served)


def parse_any_chat(raw: bytes, content_type: str, served: Served) -> Call:
    """A chat request, however uncommon. Raises Refusal."""
    document = reading.load(raw, content_type)
    request = reading.validate(bodies.ChatRequest, document)
    said = document["messages"]
    messages.check_calls(said)
    return chat(request, said, served)


def chat(request: bodies.ChatRequest, said: Sequence[Mapping[str, Any]], served: Served) -> Call:
    """A chat request whose schema is met; ``said`` are its messages as they came."""
    check_model(request.model, served)
    calling, functions = _functions(request, said, served)
    check_template(request)
    limit, name = request.max_completion_tokens, "max_completion_tokens"
    if limit is None:
        limit, name = request.max_tokens, "max_tokens"
    _check_limit(limit, name, served)
    extensions.check_truncation(request, served)
    turns = _turns(request, said)
    if request.truncate_prompt_tokens is None:
        prompting.check_characters(sum(len(turn.content) for turn in turns), served)
    role = "assistant" if request.add_generation_prompt else _last_role(said)
    last = turns[-1].content if turns and request.echo and _last_role(said) == role else ""
    prompt = _chat_prompt(request, turns, last, served)
    logprobs = request.top_logprobs if request.logprobs else None
    return call(
        request,
        served,
        prompts=(prompt,),
        n=1 if request.n is None else request.n,
        limit=limit,
        logprobs=logprobs,
        prompt_logprobs=request.echo,
        prompt_text=bool(request.return_prompt_text),
        chat=True,
        echo=bool(last),
        role=role,
        calling=calling,
        write=write_call(functions, served) if calling else None,
        thinks=thinking.wanted(request, served, request.reasoning_effort),
    )


def write_call(functions: Sequence[template.Function], served: Served) -> writing.Write:
    """A call as the parser for them wants it."""
    return writing.call(functions, dialects.of_parser(tools.parser(served)))


def check_template(
    request: bodies.ChatRequest | tokenizing.Chat | embedding_bodies.Templated,
) -> None:
    """Refuse what would be a template of the client's own, or more to it. Raises Refusal."""
    given = request.chat_template_kwargs or {}
    if request.chat_template is not None or given.get("chat_template") is not None:
        raise refusals.Refusal("This engine takes no chat template from a request.")
    if "messages" in given:
        raise refusals.Refusal("chat_template_kwargs must not hold messages.")
    extensions.media(request)


def _turns(
    request: bodies.ChatRequest | tokenizing.Chat, said: Sequence[Mapping[str, Any]]
) -> list[template.Message]:
    """What a chat template is given. Raises Refusal."""
    if not said:
        raise refusals.Refusal("messages must hold at least one message.")
    if request.continue_final_message and request.add_generation_prompt:
        raise refusals.Refusal("continue_final_message needs add_generation_prompt: false.")
    turns = [messages.turn(each) for each in messages.read(said, request.messages)]
    for turn in turns:
        prompting.check_text(turn.content)
    return turns


def _functions(
    request: bodies.ChatRequest, said: Sequence[Mapping[str, Any]], served: Served
) -> tuple[Calling | None, list[template.Function]]:
    """How a function is to be called, and which may be. Raises Refusal."""
    choice = request.tool_choice
    if choice in (None, "none"):
        return None, []
    if not tools.parser(served):
        raise refusals.Refusal("This engine runs without a tool parser: leave tool_choice out.")
    offered = _offered(request)
    if isinstance(choice, bodies.NamedTool):
        named = [each for each in offered if each.name == choice.function.name]
        return Calling.NAMED, named
    if choice == "required":
        return Calling.REQUIRED, offered
    # Once a function has answered, so does the model.
    return (Calling.AUTO if offered and _last_role(said) != "tool" else None), offered


def _offered(request: bodies.ChatRequest | tokenizing.Chat) -> list[template.Function]:
    if not request.tools:
        return []
    functions = (tool.function for tool in request.tools)
    return [template.Function(each.name, each.description, each.parameters) for each in functions]


def _chat_prompt(
    request: bodies.ChatRequest, turns: Sequence[template.Message], last: str, served: Served
) -> Prompt:
    hidden = request.tool_choice == "none" and served.has("exclude-tools-when-tool-choice-none")
    ids = template.encode(
        turns,
        () if hidden else _offered(request),
        opens_answer=request.add_generation_prompt,
        goes_on=request.continue_final_message,
    )
    kept = prompting.cut(ids, extensions.kept(request, served))
    return Prompt(len(kept), last, tuple(kept))


def tokenized(request: tokenizing.Prompt | tokenizing.Chat, asked: Any) -> list[int]:
    """The token ids asked for. Raises Refusal."""
    extensions.media(request)
    if isinstance(request, tokenizing.Prompt):
        prompting.check_text(request.prompt)
        return encoding.encode(request.prompt)
    check_template(request)
    messages.list_calls(asked["messages"])
    try:
        messages.check_calls(asked["messages"])
    except refusals.Refusal:
        raise refusals.Refusal("tool_calls must hold functions.") from None
    return template.encode(
        _turns(request, asked["messages"]),
        _offered(request),
        opens_answer=request.add_generation_prompt,
        goes_on=request.continue_final_message,
    )


def parse_completion(raw: bytes, content_type: str, served: Served) -> Call:
    """A text completion request. Raises Refusal."""
    asked, prompt = prompting.without_ids(reading.load(raw, content_type))
    request = reading.validate(bodies.CompletionRequest, asked)
    check_model(request.model, served)
    if request.suffix is not None:
        raise refusals.Refusal("This model takes no suffix: leave it out.", param="suffix")
    extensions.media(request)
    if request.prompt_embeds not in (None, []):
        raise refusals.Refusal("This engine takes no prompt_embeds.", param="prompt_embeds")
    limit, prompt_only = request.max_tokens, False
    _check_limit(limit, "max_tokens", served)
    extensions.check_truncation(request, served)
    kept = extensions.kept(request, served)
    found = prompting.of(prompt or request.prompt, served, kept, told=bool(request.echo))
    if limit == 0 and request.echo:
        limit, prompt_only = 1, True  # vLLM computes one token to echo a prompt, and counts it
    return call(
        request,
        served,
        prompts=found,
        n=request.n,
        limit=limit,
        logprobs=request.logprobs,
        chat=False,
        echo=bool(request.echo),
        prompt_only=prompt_only,
        prompt_logprobs=bool(request.echo) and request.logprobs is not None,
    )


def call(
    request: bodies.Sampling,
    served: Served,
    *,
    prompts: tuple[Prompt, ...],
    n: int,
    limit: int | None,
    logprobs: int | None,
    prompt_logprobs: bool = False,
    **rest: Any,
) -> Call:
    """The checked request. Raises Refusal."""
    for prompt in prompts:
        prompting.check_length(prompt, served)
    wish = None if rest.get("calling") else guided.wish(request)
    extensions.extra_arguments(request)
    options = request.stream_options
    stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
    checked = Call(
        prompts=prompts,
        n=n,
        max_tokens=limit,
        min_tokens=request.min_tokens,
        ignore_eos=request.ignore_eos,
        priority=request.priority,
        stream=bool(request.stream),
        include_usage=bool(options and options.include_usage),
        continuous_usage=bool(options and options.include_usage and options.continuous_usage_stats),
        seed=request.seed,
        stop=tuple(text for text in stop if text),
        stop_token_ids=frozenset(request.stop_token_ids or ()),
        include_stop=request.include_stop_str_in_output,
        logprobs=logprobs,
        prompt_logprobs=prompt_logprobs or request.prompt_logprobs is not None,
        return_token_ids=bool(request.return_token_ids),
        weight_versions=request.return_weight_versions,
        stream_interval=request.stream_interval or 1,
        tells_cached=served.has("enable-prompt-tokens-details"),
        **rest,
    )
    for prompt in prompts:
        rules.sampling(request, n, checked.limit_tokens(prompt, served))
    if n * len(prompts) > rules.MAX_N:
        message = f"{n} answers to {len(prompts)} prompts are more than {rules.MAX_N} at once."
        raise refusals.Refusal(message)
    try:
        rules.engine(request, logprobs, [prompt.ids for prompt in prompts])
        extensions.engine(request, served)
        if wish is not None:
            held = guided.constraint(wish)
            checked = checked._replace(
                write=held.write, backend=held.backend, stuck=not held.begins
            )
    except refusals.Refusal as refusal:
        if not checked.stream:
            raise
        return checked._replace(late=refusal)
    return checked


def check_model(name: str | None, served: Served) -> None:
    """A missing or empty name means the one that is served. Raises Refusal."""
    if name and name != served.name:
        raise refusals.unknown_model(name, served.name)


def _check_limit(limit: int | None, name: str, served: Served) -> None:
    if limit is not None and limit > served.max_model_tokens:
        message = f"{name} must be at most {served.max_model_tokens}, not {limit}."
        raise refusals.Refusal(message, param=name)


def _last_role(said: Sequence[Mapping[str, Any]]) -> str:
    return str(said[-1].get("role", "")) if said else ""
