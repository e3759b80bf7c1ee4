"""What a mock engine adds to vLLM's own where it stands in for another: its paths, its load gauges.

The operator, the gateway's probes and KEDA users ask an engine under the names of its profile. The
rest of the answer is vLLM's.
"""

from collections.abc import Sequence

from modelserve.api.spec import EngineType
from modelserve.engines import types
from servelab.engine.metrics.series import Family


def health_paths(profile: types.Profile) -> Sequence[str]:
    """Where it says that it is ready, each once."""
    return tuple(dict.fromkeys(("/health", profile.health_path, profile.startup_path)))


class LoadGauges:
    """Requests that run and wait, and KV use, under the engine's names; none for vLLM."""

    def __init__(self, profile: types.Profile, created_unix_s: float) -> None:
        names = profile.metrics
        wanted = [names.running, names.waiting, *([names.kv_usage] if names.kv_usage else [])]
        if profile.engine is EngineType.VLLM:
            wanted = []  # The exporter has them.
        labels: dict[str, list[dict[str, str]]] = {}
        # Where each figure goes: its family's name, and its place among the family's series.
        self._places: list[tuple[str, int]] = []
        for series in wanted:
            same = labels.setdefault(series.name, [])
            self._places.append((series.name, len(same)))
            same.append(dict(series.labels))
        self._families = {
            name: Family("gauge", name, "As vLLM's gauge of that meaning.", sets, created_unix_s)
            for name, sets in labels.items()
        }

    def render(self, running: float, waiting: float, kv_usage: float) -> str:
        """The text, after vLLM's own."""
        figures = (running, waiting, kv_usage)
        for (name, index), figure in zip(self._places, figures, strict=False):
            self._families[name].set(figure, index)
        return "".join(family.render() for family in self._families.values())
