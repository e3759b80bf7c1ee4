"""What the router was started with: the launcher's flags, or their defaults (launcher 3.3.7)."""

from dataclasses import dataclass

from servelab.engine.assembly import EngineSpec

# Of the image ghcr.io/huggingface/text-generation-inference:3.3.7; its crates were never renamed.
VERSION = "3.3.6-dev0"
SHA = "dfb3fbe78e0d1d69251bd33065591c61bafdfaa8"
DOCKER_LABEL = "sha-dfb3fbe"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on requests; ``concurrent`` counts those that run and those that wait."""

    concurrent: int
    input_tokens: int
    total_tokens: int
    best_of: int = 2
    stop_sequences: int = 4
    top_n_tokens: int = 5
    client_batch_size: int = 4
    validation_workers: int = 2
    payload_bytes: int = 2_000_000
    api_key: str = ""
    grammars: bool = True
    prefill_logprobs: bool = False


def of(spec: EngineSpec) -> Limits:
    """The limits of an engine."""
    options, config = dict(spec.options), spec.config

    def number(name: str, default: int) -> int:
        text = options.get(name, "")
        return int(text) if text.isdecimal() else default

    def switch(name: str) -> bool:
        return options.get(name, "false").lower() not in ("false", "0")

    total = config.max_model_tokens
    return Limits(
        concurrent=config.max_sequences + (config.queue_limit or 0),
        input_tokens=number("max-input-tokens", total - 1),
        total_tokens=total,
        best_of=number("max-best-of", 2),
        stop_sequences=number("max-stop-sequences", 4),
        top_n_tokens=number("max-top-n-tokens", 5),
        client_batch_size=number("max-client-batch-size", 4),
        validation_workers=number("validation-workers", 2),
        payload_bytes=number("payload-limit", 2_000_000),
        api_key=options.get("api-key", ""),
        grammars=not switch("disable-grammar-support"),
        prefill_logprobs=switch("enable-prefill-logprobs"),
    )
