"""All benches by name. A new one is a module with ``run`` and a line here."""

import importlib
from collections.abc import Callable, Mapping, Sequence

from modelserve import errors
from servelab.bench import figure, machine

Say = Callable[[str], None]

# Name → (module, what it measures); imported only when it runs.
BENCHES: Mapping[str, tuple[str, str]] = {
    "wake": ("servelab.bench.wake", "from zero, the gateway's overhead, the operator at rest"),
    "core": ("servelab.bench.core", "the engine core on virtual time"),
    "simulate": ("servelab.bench.simulate", "the simulator on virtual time, and one decision"),
    "engine": ("servelab.bench.engine", "one mock engine's process under load from wrk"),
    "nodes": ("servelab.bench.nodes", "nodes and pods of the emulator on a real control plane"),
}
ALL = "all"


def run(
    name: str, samples: int | None, say: Say, options: Mapping[str, float] | None = None
) -> figure.Report:
    """Run one bench; ``samples`` None: as many as it likes; ``options`` are this bench's own.

    Raises UnknownName.
    """
    if name not in BENCHES:
        raise errors.UnknownName("bench", name, tuple(BENCHES))
    measure: Callable[..., Sequence[figure.Figure]]
    measure = importlib.import_module(BENCHES[name][0]).run
    found = measure(samples, say, **(options or {}))
    return figure.Report(name, machine.describe(), machine.versions(), found)


def listing() -> str:
    """What there is, a line each."""
    return "\n".join(f"  {name:<10}{text}" for name, (_, text) in BENCHES.items())
