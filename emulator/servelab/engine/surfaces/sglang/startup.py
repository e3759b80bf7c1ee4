"""How long an SGLang server took to start, by part, as its metrics and ``/server_info`` tell it."""

from collections.abc import Sequence
from typing import Any

from modelserve.decide import coldstart

# What is captured; without speculation decoding alone.
GRAPHS = ("prefill", "decode", "target_verify", "draft_prefill", "draft_decode", "draft_extend")


def times(start_up_s: float, planned: Sequence[coldstart.WarmUpPart]) -> dict[str, Any]:
    """The parts in seconds: what was planned of the warm-up, and the rest for the weights.

    ``start_up_s``: from the container's start to readiness. One that was shorter than its planned
    warm-up has each part of it so much shorter.
    """
    took = {part.name: part.duration_s for part in planned}
    warm_up_s = sum(took.values())
    scale = min(1.0, start_up_s / warm_up_s) if warm_up_s else 0.0
    graphs_s = took.get(coldstart.Part.GRAPH_CAPTURE, 0.0) * scale
    served_s = took.get(coldstart.Part.API_SERVER, 0.0) * scale
    return {
        "load_weight": max(0.0, start_up_s - warm_up_s),
        "kv_cache_allocation": took.get(coldstart.Part.PROFILE_RUN, 0.0) * scale,
        "scheduler_e2e": start_up_s - served_s,
        "cuda_graph": dict.fromkeys(GRAPHS, 0.0) | {"decode": graphs_s},
        "tokenizer_e2e": start_up_s,
    }
