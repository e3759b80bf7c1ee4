"""Other simulators on the same load, where they are installed; none is needed for anything else."""

import importlib
import time

# Both are given the same; a step of a fixed time spares the peer its own model of a GPU.
STEP_MS = 10.0
KV_BLOCKS = 25_000
SEQUENCES = 256
BATCHED_TOKENS = 8192


def aisimulate_requests_per_s(
    requests: int, prompt_tokens: int, answer_tokens: int, clients: int
) -> float | None:
    """Requests that AISimulate's compiled core runs in a second; None if it is not installed."""
    try:
        runner = importlib.import_module("aisimulate.runner")
        replay = importlib.import_module("aisimulate.sweeper.replay")
    except ImportError:
        return None
    engine = {
        "engine_type": "vllm",
        "num_gpu_blocks": KV_BLOCKS,
        "block_size": 16,
        "max_num_seqs": SEQUENCES,
        "max_num_batched_tokens": BATCHED_TOKENS,
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "timing_model": {"type": "fixed", "prefill_ms": STEP_MS, "decode_ms": STEP_MS},
    }
    deployment = replay.BackendDeploymentSpec(
        deployment_mode="agg",
        backend="vllm",
        backend_version="0.10.0",
        agg_engine_args=engine,
        num_workers=1,
    )
    workload = {
        "isl": prompt_tokens,
        "osl": answer_tokens,
        "request_count": requests,
        "replay_concurrency": clients,
    }
    spec = replay.ReplaySpec(
        backend_deployment=deployment, workload=workload, goal={}, concurrency=clients
    )
    runs = runner.EngineReplayRunnerFactory().create(0)
    started_real_s = time.perf_counter()
    runs.run(spec)
    return requests / (time.perf_counter() - started_real_s)
