"""Small scenarios: one model on one pool, as little of everything as there can be."""

from collections.abc import Callable
from typing import Any

import pytest

from servelab.sim import scenario
from servelab.sim.agenda import Agenda
from servelab.sim.moves import Moves
from servelab.sim.nodes import Nodes
from servelab.sim.place import Place
from servelab.sim.pools import Pools
from servelab.sim.service import Service

Build = Callable[..., scenario.Scenario]


def build(
    traffic: list[dict[str, Any]] | None = None,
    *,
    scaling: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    model: dict[str, Any] | None = None,
    gpus: int = 8,
    copies: int = 1,
    **others: Any,
) -> scenario.Scenario:
    """``copies`` equal models with this traffic; a cold start takes some 20 s."""
    whole = {
        "model": {"name": "meta-llama/Llama-3.1-8B-Instruct"},
        "gpu": {"product": "NVIDIA-H100-80GB-HBM3"},
        "engine": {"batching": {"maxSequences": 8}},
        "coldStart": {"imageSize": "1MB", "warmUpSeconds": 5},
        "scaling": {"maxReplicas": 16, **(scaling or {})},
        **(spec or {}),
    }
    models = [
        {"name": f"model-{number}", "spec": whole, "traffic": traffic or [], **(model or {})}
        for number in range(copies)
    ]
    pools = [{"gpu": "NVIDIA-H100-80GB-HBM3", "gpusPerNode": gpus, "nodes": 1}]
    given: dict[str, Any] = {"pools": pools, "models": models, "tailSeconds": 700, **others}
    return scenario.Scenario.model_validate(given, extra="forbid")


@pytest.fixture(scope="session")
def scenario_of() -> Build:
    """The function itself, so that hypothesis may build many."""
    return build


def serve(given: scenario.Scenario) -> Service:
    """The first model by itself, from time 0 on; nobody scales it."""
    agenda, nodes = Agenda(0.0), Nodes()
    moves = Moves(agenda)
    pools = Pools(given.pools, nodes, agenda, moves, 0)
    service = Service(given.models[0], Place(agenda, nodes, pools, moves, 0))
    pools.pods, pools.freed = lambda: list(service.deployment.pods()), service.deployment.schedule
    return service


def play_until(service: Service, until_s: float) -> None:
    """Let everything happen up to then."""
    agenda = service.place.agenda
    while agenda.next_s <= until_s:
        agenda.step()


@pytest.fixture(scope="session")
def service_of() -> Callable[..., Service]:
    """The function itself."""
    return serve


@pytest.fixture(scope="session")
def play() -> Callable[[Service, float], None]:
    """The function itself."""
    return play_until
