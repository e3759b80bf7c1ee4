"""Whether an engine takes a request, and how many tokens it will give it."""

import bisect

from modelserve.errors import InputError, ModelServeError
from servelab.engine.core.config import ALL_TOKENS, CoreConfig
from servelab.engine.core.sequences import CoreRequest


class QueueFull(ModelServeError):
    """As many requests wait as may."""


class TooLarge(InputError):
    """The request can never fit into the KV cache or the model's length."""


class Intake:
    """The limits of one engine on a single request."""

    __slots__ = ("_longest", "_prompt", "_refuses", "_room")

    def __init__(self, config: CoreConfig) -> None:
        self._longest = config.max_model_tokens
        self._room = _room_tokens(config)
        self._refuses = config.refuse_oversized
        self._prompt = config.max_model_tokens
        if not config.chunked_prefill:
            self._prompt = min(self._prompt, config.max_batched_tokens)

    def limit(self, request: CoreRequest) -> int:
        """Tokens the request will get. Raises InputError for none, TooLarge if it never fits."""
        prompt_tokens, max_tokens = request.prompt_tokens, request.max_tokens
        if prompt_tokens < 1 or max_tokens < 1:
            raise InputError(f"request {request.id} needs at least one prompt and one output token")
        limit = self._longest - prompt_tokens
        if max_tokens < limit:
            limit = max_tokens
        oversized = prompt_tokens + limit - 1 > self._room
        if limit < 1 or (self._refuses and (oversized or prompt_tokens > self._prompt)):
            raise self._too_large(request)
        return limit

    def _too_large(self, request: CoreRequest) -> TooLarge:
        if request.prompt_tokens > self._prompt and self._prompt < self._longest:
            return TooLarge(
                f"the prompt of request {request.id} has {request.prompt_tokens} tokens and a step "
                f"computes {self._prompt} of prompts that are not divided: shorten it"
            )
        return TooLarge(
            f"request {request.id} needs {request.prompt_tokens + request.max_tokens} tokens and "
            f"the engine holds {min(self._longest, self._room)}: shorten it"
        )


def _room_tokens(config: CoreConfig) -> int:
    """The longest sequence for which there are blocks."""
    if config.tables == ALL_TOKENS:
        return config.kv_blocks * config.block_size
    lengths = range(1, config.max_model_tokens + 1)
    return bisect.bisect_right(lengths, config.kv_blocks, key=config.blocks_held)
