"""The limits of one engine, and by whose rules it decides."""

from dataclasses import dataclass
from enum import StrEnum

from modelserve.api.spec import BatchingMode
from modelserve.engines import kv
from modelserve.errors import InputError

BLOCK_TOKENS = 16  # vLLM's default
ALL_TOKENS: tuple[int | None, ...] = (None,)  # one table of blocks, no sliding windows
_AT_LEAST_ONE = (
    "prefill_interval",
    "max_sequences",
    "max_batched_tokens",
    "max_model_tokens",
    "kv_blocks",
    "block_size",
)


class Policy(StrEnum):
    """Whose scheduler decides what a step computes; each has its module."""

    VLLM = "vllm"
    SGLANG = "sglang"
    NO_EVICT = "guaranteed-no-evict"  # TensorRT-LLM's default
    MAX_UTILIZATION = "max-utilization"  # TensorRT-LLM's other one


@dataclass(frozen=True, slots=True)
class CoreConfig:
    """Limits of one engine.

    ``queue_limit`` None: any number may wait. ``jitter`` is the sigma of a step's log-normal
    factor. A request is ready to start ``front_s`` seconds after it came; in mode dynamic a batch
    that is not full gathers for ``gather_s``. ``long_prefill_tokens``: most prompt tokens of one
    sequence in a step while there are others, 0 for no such limit, with ``fair_prefills`` at least
    its share of a step. ``reserve_prompts`` off: a prompt starts if there are blocks for its first
    part. Beside others it needs ``spare_blocks`` that stay free. ``refuse_oversized`` off: also
    a request that can never get all its blocks is taken, and waits. ``chunked_prefill`` off: a
    prompt is computed in one step. ``mixed_chunk`` is SGLang's: prompts and decoding share steps.
    ``tables`` are the windows of groups of layers, None for one without. With a ``lag`` a step is
    decided when the one before starts. With a ``prefill_interval`` above 1 prompts are computed in
    one of so many steps. ``by_priority``: not first come, first served; of SGLang
    those run no longer whose number is higher by more than the ``priority_gap``. Layers with a
    sliding window may have a ``second_pool``: the window, and the pool's tokens.
    """

    max_sequences: int
    max_batched_tokens: int
    max_model_tokens: int
    kv_blocks: int
    block_size: int = BLOCK_TOKENS
    batching: BatchingMode = BatchingMode.CONTINUOUS
    queue_limit: int | None = None
    jitter: float = 0.0
    gather_s: float = 0.05
    front_s: float = 0.0
    prefix_caching: bool = False
    long_prefill_tokens: int = 0
    fair_prefills: bool = False
    reserve_prompts: bool = True
    spare_blocks: int = 0
    refuse_oversized: bool = True
    policy: Policy = Policy.VLLM
    chunked_prefill: bool = True
    mixed_chunk: bool = False
    tables: tuple[int | None, ...] = ALL_TOKENS
    lag: bool = False
    prefill_interval: int = 1
    by_priority: bool = False
    priority_gap: int | None = None
    second_pool: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        for name in _AT_LEAST_ONE:
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        windows = {window for window in self.tables if window is not None}
        if not self.tables or len(windows) > 1 or any(window < 1 for window in windows):
            raise InputError(f"tables must name one sliding window at most, not {self.tables}")
        if (self.lag or windows) and self.policy is not Policy.VLLM:
            raise InputError(f"policy {self.policy} has neither a lag nor tables of blocks")

    @property
    def slots(self) -> int:
        """Most sequences that run at once."""
        return 1 if self.batching == BatchingMode.NONE else self.max_sequences

    def blocks_for(self, tokens: int) -> int:
        """KV blocks that hold so many tokens."""
        return -(-tokens // self.block_size)

    @property
    def in_flight_tokens(self) -> int:
        """Most tokens that are computed but whose outcome is not known yet."""
        return self.max_batched_tokens * (2 if self.lag else 1)

    def window_blocks(self, window: int) -> int:
        """Most blocks of a sequence in a table with that window: also those of a step under way."""
        limits = self.in_flight_tokens, self.max_model_tokens
        return kv.window_blocks(window, *limits, self.block_size)

    def blocks_held(self, tokens: int) -> int:
        """Most blocks that a sequence of so many tokens has in all its tables."""
        blocks = self.blocks_for(tokens)
        return sum(
            blocks if window is None else min(blocks, self.window_blocks(window))
            for window in self.tables
        )
