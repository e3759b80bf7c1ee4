"""A scenario for the invariants that are held in whole runs of the simulator."""

from collections.abc import Callable
from typing import Any

import pytest

from servelab.sim import scenario

Build = Callable[..., scenario.Scenario]


@pytest.fixture(scope="session")
def scenario_of() -> Build:
    """One model on eight GPUs with a cold start of some 20 s; the function, so as to build many."""

    def build(
        traffic: list[dict[str, Any]], *, scaling: dict[str, Any] | None = None, **others: Any
    ) -> scenario.Scenario:
        spec = {
            "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
            "gpu": {"product": "NVIDIA-H100-80GB-HBM3"},
            "engine": {"batching": {"maxSequences": 8}},
            "coldStart": {"imageSize": "1MB", "warmUpSeconds": 5},
            "drainSeconds": 600,
            "scaling": {"maxReplicas": 16, **(scaling or {})},
        }
        given = {
            "pools": [{"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": 8, "nodes": 1}],
            "models": [{"name": "m", "spec": spec, "traffic": traffic}],
            "tailSeconds": 700,
            "stepJitter": 0,
            **others,
        }
        return scenario.Scenario.model_validate(given, extra="forbid")

    return build
