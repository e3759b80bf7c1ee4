"""The outsides of the engines by type: surface and exporter (their logs: ``logs``)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from modelserve.api.spec import EngineType
from modelserve.engines import kserve
from servelab.engine.assembly import EngineSpec
from servelab.engine.metrics import nim as nim_metrics
from servelab.engine.metrics import sglang as sglang_metrics
from servelab.engine.metrics import tensorrt_llm as tensorrt_llm_metrics
from servelab.engine.metrics import tgi as tgi_metrics
from servelab.engine.metrics import triton as triton_metrics
from servelab.engine.metrics import vllm as vllm_metrics
from servelab.engine.metrics.exporting import Exporter, Load
from servelab.engine.surfaces.kserve.surface import KserveSurface
from servelab.engine.surfaces.nim.surface import NimSurface
from servelab.engine.surfaces.sglang.surface import SglangSurface
from servelab.engine.surfaces.surface import Host, Surface
from servelab.engine.surfaces.tensorrt_llm.surface import TensorrtLlmSurface
from servelab.engine.surfaces.tgi.surface import TgiSurface
from servelab.engine.surfaces.triton.surface import TritonSurface
from servelab.engine.surfaces.vllm import keys


@dataclass(frozen=True, slots=True)
class Outside:
    """What one engine looks like from outside.

    ``exporter`` is made of the engine, its gauges, and the Unix time it was made at.
    """

    surface: Callable[[Host], Surface]
    exporter: Callable[[EngineSpec, Load, float], Exporter]


_VLLM = Outside(keys.surface, vllm_metrics.exporter)
_KSERVE = Outside(KserveSurface, vllm_metrics.exporter)
_OUTSIDES = {
    EngineType.VLLM: _VLLM,
    EngineType.SGLANG: Outside(SglangSurface, sglang_metrics.exporter),
    EngineType.TENSORRT_LLM: Outside(TensorrtLlmSurface, tensorrt_llm_metrics.exporter),
    EngineType.TGI: Outside(TgiSurface, tgi_metrics.exporter),
    EngineType.TRITON: Outside(TritonSurface, triton_metrics.exporter),
    EngineType.NIM: Outside(NimSurface, nim_metrics.exporter),
}


def of(engine: EngineType, options: Iterable[tuple[str, str]] = ()) -> Outside:
    """The outside of an engine; ``options`` are those of its launch."""
    if kserve.FRONT_END in dict(options).items():
        return _KSERVE
    return _OUTSIDES.get(engine, _VLLM)
