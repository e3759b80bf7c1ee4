"""The bodies the router takes, with the names and Rust types of its lib.rs."""

from servelab.engine.surfaces.tgi import serde
from servelab.engine.surfaces.tgi.serde import Field, Kind, optional, struct, untagged

_OFF = Field(serde.boolean, lambda: False)
_STOPS = Field(serde.listed(serde.string), list)


def _grammar(value: object, path: serde.Path) -> object:
    """A grammar: adjacently tagged by type and value."""
    return _TAGGED(value, path)


def _tag(value: object, path: serde.Path) -> str:
    names = ("json", "json_object", "regex", "json_schema")
    kind = serde.string(value, path)
    if kind not in names:
        expected = "one of " + ", ".join(f"`{name}`" for name in names)
        raise serde.Mismatch(f"unknown variant `{kind}`, expected {expected}", path)
    return kind


_TAGGED = struct(
    "GrammarType",
    {"type": Field(_tag), "value": Field(serde.anything)},
    "adjacently tagged enum GrammarType",
)

PARAMETERS: dict[str, Field] = {
    "best_of": optional(serde.usize),
    "temperature": optional(serde.f32),
    "repetition_penalty": optional(serde.f32),
    "frequency_penalty": optional(serde.f32),
    "top_k": optional(serde.i32),
    "top_p": optional(serde.f32),
    "typical_p": optional(serde.f32),
    "do_sample": _OFF,
    "max_new_tokens": optional(serde.u32),
    "return_full_text": optional(serde.boolean),
    "stop": _STOPS,
    "truncate": optional(serde.usize),
    "watermark": _OFF,
    "details": _OFF,
    "decoder_input_details": _OFF,
    "seed": optional(serde.u64),
    "top_n_tokens": optional(serde.u32),
    "grammar": optional(_grammar),
    "adapter_id": optional(serde.string),
}


def parameters(**given: object) -> dict[str, object]:
    """Parameters with these set; as the router makes them where a body has none, it samples."""
    left_out = {
        name: field.default() for name, field in PARAMETERS.items() if field.default is not None
    }
    return left_out | {"do_sample": True} | given


_PARAMETERS = Field(struct("GenerateParameters", PARAMETERS), parameters)

GENERATE = struct("GenerateRequest", {"inputs": Field(serde.string), "parameters": _PARAMETERS})
COMPATIBLE = struct(
    "CompatGenerateRequest",
    {"inputs": Field(serde.string), "parameters": _PARAMETERS, "stream": _OFF},
)


def _prompts(value: object, path: serde.Path) -> list[str]:
    kind = untagged("PromptDeserializer", serde.string, serde.listed(serde.string))
    prompts = kind(value, path)
    if not prompts and isinstance(prompts, list):
        message = "Empty array detected. Do not use an empty array for the prompt."
        raise serde.Mismatch(message, path, serde.Noticed.AFTER_WHAT_FOLLOWS)
    return [prompts] if isinstance(prompts, str) else prompts


COMPLETION = struct(
    "CompletionRequest",
    {
        "model": optional(serde.string),
        "prompt": Field(_prompts),
        "max_tokens": optional(serde.u32),
        "temperature": optional(serde.f32),
        "top_p": optional(serde.f32),
        "stream": _OFF,
        "seed": optional(serde.u64),
        "suffix": optional(serde.string),
        "repetition_penalty": optional(serde.f32),
        "frequency_penalty": optional(serde.f32),
        "stop": optional(serde.listed(serde.string)),
    },
)


def _chunk(value: object, path: serde.Path) -> object:
    kinds = {"text": _TEXT_CHUNK, "image_url": _IMAGE_CHUNK}
    name = _KIND(value, path)["type"]
    if name not in kinds:
        raise serde.Mismatch(f"unknown variant `{name}`, expected `text` or `image_url`", path)
    return kinds[name](value, path)


_KIND = struct("MessageChunk", {"type": Field(serde.string)})
_TEXT_CHUNK = struct("MessageChunk", {"type": Field(serde.string), "text": Field(serde.string)})
_IMAGE_CHUNK = struct(
    "MessageChunk",
    {
        "type": Field(serde.string),
        "image_url": Field(struct("Url", {"url": Field(serde.string)})),
    },
)
_FUNCTION = struct(
    "FunctionDefinition",
    {
        "description": optional(serde.string),
        "name": Field(serde.string),
        "arguments": Field(serde.anything, alias="parameters"),
    },
)
_CONTENT = untagged("MessageContent", serde.string, serde.listed(_chunk))
_TOOL_CALL = struct(
    "ToolCall",
    {"id": Field(serde.string), "type": Field(serde.string), "function": Field(_FUNCTION)},
)
_BODY = untagged(
    "MessageBody",
    struct("MessageBody", {"content": Field(_CONTENT)}),
    struct("MessageBody", {"tool_calls": Field(serde.listed(_TOOL_CALL))}),
    noticed=serde.Noticed.AFTER_IT,
)


def _message(value: object, path: serde.Path) -> object:
    """A message: its body is flattened into it."""
    head = _MESSAGE(value, path)
    return _BODY(value, path) | head


_MESSAGE = struct("Message", {"role": Field(serde.string), "name": optional(serde.string)})

_CHOICE: Kind = untagged(
    "ToolTypeDeserializer",
    serde.option(serde.string),
    struct(
        "TypedChoice",
        {
            "type": Field(serde.string),
            "function": Field(struct("FunctionName", {"name": Field(serde.string)})),
        },
    ),
)

CHAT = struct(
    "ChatRequest",
    {
        "model": optional(serde.string),
        "messages": Field(serde.listed(_message)),
        "frequency_penalty": optional(serde.f32),
        "logit_bias": optional(serde.listed(serde.f32)),
        "logprobs": optional(serde.boolean),
        "top_logprobs": optional(serde.u32),
        "max_tokens": Field(serde.option(serde.u32), lambda: None, "max_completion_tokens"),
        "n": optional(serde.u32),
        "presence_penalty": optional(serde.f32),
        "stop": optional(serde.listed(serde.string)),
        "stream": _OFF,
        "seed": optional(serde.u64),
        "temperature": optional(serde.f32),
        "top_p": optional(serde.f32),
        "tools": optional(
            serde.listed(
                struct("Tool", {"type": Field(serde.string), "function": Field(_FUNCTION)})
            )
        ),
        "tool_prompt": optional(serde.string),
        "tool_choice": Field(_CHOICE, lambda: None),
        "response_format": optional(_grammar),
        "stream_options": Field(
            struct("StreamOptions", {"include_usage": _OFF}), lambda: {"include_usage": False}
        ),
    },
)

INVOCATION = untagged("SagemakerRequest", COMPATIBLE, CHAT, COMPLETION)
