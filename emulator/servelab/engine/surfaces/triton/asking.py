"""From a body of the OpenAI front end to a checked call: its rules, in their order."""

from collections.abc import Sequence

from servelab.engine.calls import Call, Prompt, Served
from servelab.engine.surfaces.fastapi import HttpError
from servelab.engine.surfaces.triton import schemas
from servelab.engine.surfaces.triton.schemas import CreateChatCompletionRequest as Chat
from servelab.engine.surfaces.triton.schemas import CreateCompletionRequest as Completion
from servelab.engine.text import encoding, template


def refusal(detail: str) -> HttpError:
    """Whatever goes wrong in the engine, the front end calls it a bad request."""
    return HttpError(detail, 400)


def chat(request: Chat, served: Served, default_max_tokens: int) -> Call:
    """A chat. Raises HttpError."""
    if request.model != served.name:
        raise refusal(f"Unknown model: {request.model}")
    _check_n(request)
    if request.logit_bias is not None or request.logprobs:
        raise refusal("logit bias and log probs not currently supported")
    _check_tools(request)
    _check_stream(request)
    turns = [_turn(message) for message in request.messages]
    functions = [
        template.Function(tool.function.name, tool.function.description, tool.function.parameters)
        for tool in request.tools or ()
    ]
    ids = tuple(template.encode(turns, functions))
    limit = request.max_completion_tokens
    limit = request.max_tokens if limit is None else limit
    return _call(
        request, (Prompt(len(ids), "", ids),), default_max_tokens if limit is None else limit
    )


def completion(request: Completion, served: Served, default_max_tokens: int) -> Call:
    """A text completion. Raises HttpError."""
    if request.model != served.name:
        raise refusal(f"Unknown model: {request.model}")
    if request.suffix is not None:
        raise refusal("suffix is not currently supported")
    if not request.prompt:
        raise refusal("prompt must be non-empty")
    if not isinstance(request.prompt, str):
        raise refusal("only single string input is supported")
    _check_n(request)
    if request.best_of and request.best_of > 1:
        only = "but only single choice (best_of=1) is currently supported"
        raise refusal(f"Received best_of={request.best_of}, {only}")
    if request.logit_bias is not None or request.logprobs is not None:
        raise refusal("logit bias and log probs not supported")
    _check_stream(request)
    prompt = Prompt(encoding.count(request.prompt) or 1, request.prompt)
    limit = default_max_tokens if request.max_tokens is None else request.max_tokens
    return _call(request, (prompt,), limit)


def too_long(call: Call, served: Served) -> str | None:
    """What the backend says of a prompt that leaves no room for an answer."""
    (prompt,) = call.prompts
    most = served.max_model_tokens - 1
    if prompt.tokens <= most:
        return None
    return f"Prompt length ({prompt.tokens}) exceeds maximum input length ({most})."


def _call(request: schemas.Sampling, prompts: tuple[Prompt, ...], limit: int) -> Call:
    stop = [request.stop] if isinstance(request.stop, str) else request.stop or []
    # Neither the fewest tokens nor the wish to go on past the end reach the backend.
    return Call(
        chat=isinstance(request, Chat),
        prompts=prompts,
        max_tokens=max(1, limit),
        stream=bool(request.stream),
        seed=request.seed,
        stop=tuple(text for text in stop if text),
    )


def _check_n(request: schemas.Sampling) -> None:
    if request.n and request.n > 1:
        only = "but only single choice (n=1) is currently supported"
        raise refusal(f"Received n={request.n}, {only}")


def _check_stream(request: schemas.Sampling) -> None:
    if request.stream_options and not request.stream:
        raise refusal("`stream_options` can only be used when `stream` is True")
    if request.stream_options and request.stream_options.include_usage:
        only = "is currently only supported for the vLLM backend"
        raise refusal(f"`stream_options.include_usage` {only}")


def _check_tools(request: Chat) -> None:
    chosen = request.tool_choice.root if request.tool_choice else None
    options = schemas.ChatCompletionToolChoiceOption1
    needs = "tool choice requires CreateChatCompletionRequest.tools to be provided"
    if chosen is options.required and not request.tools:
        raise refusal(f'"required" {needs}')
    if isinstance(chosen, schemas.ChatCompletionNamedToolChoice) and not request.tools:
        raise refusal(f"Named {needs}")
    if chosen is options.auto:
        raise refusal('"auto" tool choice requires --tool-call-parser to be set')
    if chosen is None and request.tools:
        raise refusal("having tools in the request requires --tool-call-parser to be set")


def _turn(message: schemas.ChatCompletionRequestMessage) -> template.Message:
    said = message.root
    return template.Message(said.role.value, _text(said.content))


def _text(
    content: str | Sequence[schemas.ChatCompletionRequestMessageContentPart] | None,
) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    texts = []
    for part in content:
        if not isinstance(part.root, schemas.ChatCompletionRequestMessageContentPartText):
            kind = part.root.type.value
            raise refusal(f"only text message is supported, but got {kind}")
        texts.append(part.root.text)
    return "".join(texts)
