"""Which of vLLM's metric names lived in which of its versions.

Read off the wheels on PyPI (Apache-2.0): ``vllm/engine/metrics.py`` up to 0.7, of the engine that
was the default until 0.8.0, and ``vllm/v1/metrics/loggers.py`` from there on; of 0.5.0, 0.5.4,
0.5.5, 0.6.0 and 0.6.2 to 0.6.6, 0.7.0, 0.7.3, 0.8.0 and 0.8.2 to 0.8.5, and of nearly all since.
Left out are names that need a feature or a flag of their own (LoRA, speculative decoding, detailed
traces, ``corrupted_requests``, ``kv_block_…``, ``watermark_requests``).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from modelserve.catalog import images

Version = tuple[int, ...]

CURRENT: Version = (0, 33, 0)
# The option that shows what a version hides, once it is given the minor version before it.
SHOW_HIDDEN = "show-hidden-metrics-for-version"
# An option of this project's: every name that is gone is there too.
ALSO_OLD = "also-old-metric-names"

_TAG = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Life:
    """From a version on, and up to one without it; in between it may be hidden at first."""

    since: Version = (0,)
    hidden: Version | None = None
    until: Version | None = None


_BEFORE_V1: Version = (0, 8)
_HITS = Life(_BEFORE_V1, (0, 11), (0, 12))
# Base names, without ``vllm:`` and ``_total``; any other is in all versions.
LIVES: Mapping[str, Life] = {
    # Names of today.
    "iteration_tokens_total": Life((0, 6, 4)),
    "request_queue_time_seconds": Life((0, 6, 4)),
    "request_inference_time_seconds": Life((0, 6, 4)),
    "request_prefill_time_seconds": Life((0, 6, 4)),
    "request_decode_time_seconds": Life((0, 6, 4)),
    "request_max_num_generation_tokens": Life((0, 6, 4)),
    "request_params_max_tokens": Life((0, 6, 4)),
    "kv_cache_usage_perc": Life((0, 9, 2)),
    "prefix_cache_queries": Life((0, 9, 2)),
    "prefix_cache_hits": Life((0, 9, 2)),
    "inter_token_latency_seconds": Life((0, 10, 2)),
    "request_time_per_output_token_seconds": Life((0, 11)),
    "engine_sleep_state": Life((0, 11, 1)),
    "external_prefix_cache_queries": Life((0, 11, 1)),
    "external_prefix_cache_hits": Life((0, 11, 1)),
    "mm_cache_queries": Life((0, 11, 1)),
    "mm_cache_hits": Life((0, 11, 1)),
    "request_prefill_kv_computed_tokens": Life((0, 13)),
    "estimated_flops_per_gpu": Life((0, 17)),
    "estimated_read_bytes_per_gpu": Life((0, 17)),
    "estimated_write_bytes_per_gpu": Life((0, 17)),
    "prompt_tokens_by_source": Life((0, 16)),
    "prompt_tokens_cached": Life((0, 16)),
    "num_requests_waiting_by_reason": Life((0, 20)),
    "request_num_preemptions": Life((0, 30)),
    "prompt_tokens_cached_by_source": Life((0, 32)),
    "admission_rejections": Life((0, 32)),
    # Names that are gone.
    "request_params_best_of": Life(until=(0, 6, 3)),
    "avg_prompt_throughput_toks_per_s": Life(until=(0, 7)),
    "avg_generation_throughput_toks_per_s": Life(until=(0, 7)),
    "num_requests_swapped": Life(until=_BEFORE_V1),
    "cpu_cache_usage_perc": Life(until=_BEFORE_V1),
    "cpu_prefix_cache_hit_rate": Life((0, 5, 5), until=_BEFORE_V1),
    "gpu_prefix_cache_hit_rate": Life((0, 5, 5), until=_BEFORE_V1),
    "tokens": Life((0, 6, 4), until=_BEFORE_V1),
    "time_in_queue_requests": Life((0, 6, 4), until=_BEFORE_V1),
    "gpu_cache_usage_perc": Life((0,), (0, 11), (0, 12)),
    "gpu_prefix_cache_queries": _HITS,
    "gpu_prefix_cache_hits": _HITS,
    "time_per_output_token_seconds": Life((0,), (0, 12), (0, 15)),
}
_LABELLED_BY_ENGINE: Version = (0, 8, 3)
_LONG_BOUNDS: Version = (0, 8, 4)
_FINE_REQUEST_BOUNDS: Version = (0, 6, 4)
_BEYOND_S = 10.0
_BEYOND_TOKEN_S = 2.5
_BEYOND_REQUEST_S = 60.0
_COARSE_REQUEST_BOUNDS = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)


@dataclass(frozen=True, slots=True)
class Names:
    """The names one engine exports."""

    version: Version = CURRENT
    shows_hidden: bool = False
    also_old: bool = False

    def has(self, name: str) -> bool:
        """Whether a base name is exported."""
        life = LIVES.get(name, Life())
        if self.also_old and life.until is not None:
            return True
        if self.version < life.since or (life.until is not None and self.version >= life.until):
            return False
        return life.hidden is None or self.version < life.hidden or self.shows_hidden

    @property
    def labels_engine(self) -> bool:
        """Whether series carry ``engine`` beside ``model_name``."""
        return self.version >= _LABELLED_BY_ENGINE

    def first_token_bounds(self, bounds: tuple[float, ...]) -> tuple[float, ...]:
        """Of the time to the first token; ``bounds`` are today's, here and below."""
        return self._cut(bounds, _BEYOND_S)

    def token_bounds(self, bounds: tuple[float, ...]) -> tuple[float, ...]:
        """Of the time per token."""
        return self._cut(bounds, _BEYOND_TOKEN_S)

    def request_bounds(self, bounds: tuple[float, ...]) -> tuple[float, ...]:
        """Of the times of a request."""
        if self.version < _FINE_REQUEST_BOUNDS:
            return _COARSE_REQUEST_BOUNDS
        return self._cut(bounds, _BEYOND_REQUEST_S)

    def _cut(self, bounds: tuple[float, ...], limit: float) -> tuple[float, ...]:
        if self.version >= _LONG_BOUNDS:
            return bounds
        return tuple(bound for bound in bounds if bound <= limit)


def of(image: str, options: Mapping[str, str]) -> Names:
    """The names of an engine by its image's tag and its options."""
    version = version_of(image)
    before = f"{version[0]}.{version[1] - 1}"
    return Names(version, options.get(SHOW_HIDDEN) == before, ALSO_OLD in options)


def version_of(image: str) -> Version:
    """The version a vLLM image's tag tells; today's where it tells none, or a later one."""
    name, tag = images.split(image)
    told = _TAG.match(tag)
    if told is None or not name.rsplit("/", 1)[-1].startswith("vllm"):
        return CURRENT
    return min(CURRENT, tuple(int(part or 0) for part in told.groups()))
