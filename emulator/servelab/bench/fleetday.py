"""A day of a fleet, for the bench ``simulate``: 100 models on 1,000 GPUs, two million requests.

What is served how often is a choice, made so that all of a fleet's kinds are there: few models get
most of the requests (Zipf's law), all follow the hours of a day in three time zones, gaps come in
bursts, and models of one, two and four GPUs share one pool of nodes. ``python -m
servelab.bench.fleetday`` runs it and prints what it took.
"""

import json
import math
import resource
import time
from collections.abc import Iterator
from typing import Any

from servelab.sim import running, scenario

MODELS, NODES, GPUS_PER_NODE = 100, 125, 8
HOURS, REQUESTS = 24, 2_000_000
GPU = "NVIDIA-H100-80GB-HBM3"
# Hub name, GPUs of a replica, slots, and how many of ten models are like it.
KINDS = (
    ("meta-llama/Llama-3.1-8B-Instruct", 1, 32, 6),
    ("Qwen/Qwen2.5-32B-Instruct", 2, 32, 3),
    ("meta-llama/Llama-3.3-70B-Instruct", 4, 48, 1),
)
ZIPF = 1.0
BURSTS_CV = 2.0
TIME_ZONES_H = (0, 8, 16)
NIGHT = 0.15  # of the mean rate, at the quietest hour


def of(hours: int = HOURS, models: int = MODELS) -> scenario.Scenario:
    """The day, or its first ``hours``, of the first so many models."""
    return scenario.Scenario.model_validate(
        {
            "description": f"{models} models, {NODES * GPUS_PER_NODE} GPUs, {hours} h",
            "pools": [{"name": "h100", "gpu": GPU, "gpusPerNode": GPUS_PER_NODE, "nodes": NODES}],
            "models": list(_models(hours, models)),
            "stepJitter": 0,
        }
    )


def _models(hours: int, models: int) -> Iterator[dict[str, Any]]:
    shares = [1 / (rank + 1) ** ZIPF for rank in range(MODELS)]
    kinds = [kind for kind in KINDS for _ in range(kind[3])]
    for rank in range(models):
        hub_name, gpus, slots, _ = kinds[rank * 7 % len(kinds)]
        mean_per_s = REQUESTS * shares[rank] / sum(shares) / (HOURS * 3600)
        zone_h = TIME_ZONES_H[rank % len(TIME_ZONES_H)]
        rates = [mean_per_s * _hour(at + zone_h) for at in range(hours)]
        windows = {"perSecond": rates, "secondsEach": 3600, "cv": BURSTS_CV}
        yield {
            "name": f"model-{rank + 1}",
            "spec": {
                "model": {"name": hub_name},
                "gpu": {"product": GPU, "tensorParallel": gpus},
                "engine": {"batching": {"maxSequences": slots}},
                "scaling": {"maxReplicas": 32},
            },
            "traffic": [
                {
                    "windows": windows,
                    "input": {"median": 600, "p95": 3000, "max": 16_000},
                    "output": {"median": 150, "p95": 600, "max": 2000},
                }
            ],
        }


def _hour(at: int) -> float:
    """The rate of an hour of the day, as a multiple of the day's mean."""
    return 1 - (1 - NIGHT) * math.cos(2 * math.pi * at / 24)


def main() -> None:
    """Run the day; CPU seconds, peak memory, and how many requests there were, as JSON."""
    given = of()
    began_real_s = time.process_time()
    models = running.run(given, "committed").models
    cpu_s = time.process_time() - began_real_s
    rss_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    requests = sum(model.records.arrived for model in models)
    print(json.dumps({"cpu_s": cpu_s, "rss_bytes": rss_bytes, "requests": requests}))  # noqa: T201


if __name__ == "__main__":
    main()
