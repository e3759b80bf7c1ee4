"""The outsides of the engines by type: surface, exporter, log."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from modelserve.api.spec import EngineType
from servelab.engine.assembly import EngineSpec
from servelab.engine.metrics import tgi as tgi_metrics
from servelab.engine.metrics import vllm as vllm_metrics
from servelab.engine.metrics.exporting import Exporter, Load
from servelab.engine.surfaces.surface import Host, Log, Surface
from servelab.engine.surfaces.tgi import logs as tgi_logs
from servelab.engine.surfaces.tgi.surface import TgiSurface
from servelab.engine.surfaces.vllm import logs as vllm_logs
from servelab.engine.surfaces.vllm.surface import VllmSurface


@dataclass(frozen=True, slots=True)
class Outside:
    """What one engine looks like from outside.

    ``exporter`` is made of the engine, its gauges, and the Unix time it was made at.
    """

    surface: Callable[[Host], Surface]
    exporter: Callable[[EngineSpec, Load, float], Exporter]
    log: Log


_VLLM = Outside(VllmSurface, vllm_metrics.exporter, cast(Log, vllm_logs))
_TGI = Outside(TgiSurface, tgi_metrics.exporter, cast(Log, tgi_logs))
_OUTSIDES = {EngineType.VLLM: _VLLM, EngineType.TGI: _TGI}


def of(engine: EngineType) -> Outside:
    """The outside of an engine."""
    return _OUTSIDES.get(engine, _VLLM)
