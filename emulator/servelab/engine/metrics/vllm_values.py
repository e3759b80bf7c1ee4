"""Buckets, label values and what the cache tells, as vLLM 0.33.0's own logger exposes them."""

from dataclasses import dataclass

TTFT_BOUNDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0),
    *(2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
TOKEN_TIME_BOUNDS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0),
    *(2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0),
)
REQUEST_TIME_BOUNDS = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0),
    *(60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0),
)
ITERATION_BOUNDS = (1.0, *(float(2**power) for power in range(3, 15)))
REASONS = ("stop", "length", "abort", "error", "repetition")
PROMPT_SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
CACHE_TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
SLEEP_STATES = ("awake", "weights_offloaded", "discard_all")
REJECTIONS = ("max_num_queued_reqs", "max_num_queued_tokens")


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """What ``vllm:cache_config_info`` tells."""

    block_size: int
    gpu_blocks: int
    gpu_memory_utilization: float
    prefix_caching: bool = False

    def labels(self) -> dict[str, str]:
        """All labels of the series but ``engine``."""
        unset = (
            *("cache_hit_alignment_tokens", "effective_attention_block_size", "hash_block_size"),
            *("kv_cache_layout", "kv_cache_max_concurrency", "kv_cache_memory_bytes"),
            *("kv_cache_size_tokens", "kv_offloading_size", "mamba_block_size"),
            *("mamba_page_size_padded", "mamba_ssm_cache_dtype", "num_cpu_blocks"),
            *("num_gpu_blocks_override", "prefix_match_unit", "simple_cpu_offload_num_blocks"),
            *("skip_page_size_padded", "sliding_window"),
        )
        off = (
            *("enable_mamba_shared_prefix_checkpoint", "is_attention_free"),
            *("kv_sharing_fast_prefill", "use_kda_recoverssm", "use_replayssm"),
        )
        return {
            **dict.fromkeys(unset, "None"),
            **dict.fromkeys(off, "False"),
            "_block_size_resolved": "True",
            "block_size": str(self.block_size),
            "cache_dtype": "auto",
            "enable_prefix_caching": str(self.prefix_caching),
            "gpu_memory_utilization": str(self.gpu_memory_utilization),
            "kv_cache_dtype_skip_layers": "[]",
            "kv_offloading_backend": "native",
            "mamba_cache_dtype": "auto",
            "mamba_cache_mode": "none",
            "mamba_ssm_cache_dtype": "auto",
            "num_gpu_blocks": str(self.gpu_blocks),
            "prefix_cache_retention_interval": "0",
            "prefix_caching_hash_algo": "sha256",
            "replayssm_buffer_len": "16",
            "swa_bounded_replay": "True",
            "user_specified_block_size": "True",
        }
