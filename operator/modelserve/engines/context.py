"""A model's own context against the length an engine is told: what is left out, what is refused.

vLLM (``_get_and_verify_max_len`` of its config/model.py) and SGLang (``_derive_context_length`` of
its configs/model_config.py) do not start with more, unless a variable allows it; TensorRT-LLM goes
on with what the model has, and TGI believes what it is told.
"""

from collections.abc import Mapping

from modelserve import errors
from modelserve.api.spec import EngineType
from modelserve.catalog.architecture import Model

# Of a ModelServe that says nothing, where the model's context is no shorter.
DEFAULT_TOKENS = 8192

# What lets an engine start with more than its model's context.
VARIABLES: Mapping[EngineType, str] = {
    EngineType.VLLM: "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    EngineType.NIM: "VLLM_ALLOW_LONG_MAX_MODEL_LEN",
    EngineType.SGLANG: "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN",
}
_ON = frozenset({"1", "true", "yes", "y"})


def default_tokens(model: Model) -> int:
    """The longest request in tokens, where nobody says."""
    return min(DEFAULT_TOKENS, model.max_context_tokens)


def is_allowed(engine: EngineType, env: Mapping[str, str]) -> bool:
    """Whether the engine starts with more than its model's context: its variable says so."""
    return env.get(VARIABLES.get(engine, ""), "").strip().lower() in _ON


def taken(engine: EngineType, model: Model, told_tokens: int, env: Mapping[str, str]) -> int:
    """The length that an engine goes by. Raises StartRefused, in its words, where it ends."""
    most = model.max_context_tokens
    if told_tokens <= most or engine is EngineType.TGI or is_allowed(engine, env):
        return told_tokens
    if engine not in VARIABLES:
        return most
    variable = VARIABLES[engine]
    if engine is EngineType.SGLANG:
        raise errors.StartRefused(
            f"ValueError: Warning: User-specified context_length ({told_tokens}) is greater than "
            f"the derived context_length ({most}). This may lead to incorrect model outputs or "
            "CUDA errors. Note that the derived context_length may differ from "
            "max_position_embeddings in the model's config. To allow overriding this maximum, set "
            f"the env var {variable}=1"
        )
    # Its rotary embedding's scale makes the derived length a float.
    raise errors.StartRefused(
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        f"  Value error, User-specified max_model_len ({told_tokens}) is greater than the derived "
        f"max_model_len (max_position_embeddings={float(most)} or model_max_length=None in "
        f"model's config.json). To allow overriding this maximum, set the env var {variable}=1. "
        f"{variable} must be used with extreme caution. If the model uses relative position "
        "encoding (RoPE), positions exceeding derived_max_model_len lead to nan. If the model "
        "uses absolute position encoding, positions exceeding derived_max_model_len will cause a "
        "CUDA array out-of-bounds error. [type=value_error, input_value=ArgsKwargs((), "
        f"{{'model': {model.name!r}}}), input_type=ArgsKwargs]"
    )
