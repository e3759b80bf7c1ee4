"""The outsides of the engines by type: surface, exporter, log."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

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
from servelab.engine.surfaces.kserve import logs as kserve_logs
from servelab.engine.surfaces.kserve.surface import KserveSurface
from servelab.engine.surfaces.nim import logs as nim_logs
from servelab.engine.surfaces.nim.surface import NimSurface
from servelab.engine.surfaces.sglang import logs as sglang_logs
from servelab.engine.surfaces.sglang.surface import SglangSurface
from servelab.engine.surfaces.surface import Host, Log, Surface
from servelab.engine.surfaces.tensorrt_llm import logs as tensorrt_llm_logs
from servelab.engine.surfaces.tensorrt_llm.surface import TensorrtLlmSurface
from servelab.engine.surfaces.tgi import logs as tgi_logs
from servelab.engine.surfaces.tgi.surface import TgiSurface
from servelab.engine.surfaces.triton import logs as triton_logs
from servelab.engine.surfaces.triton.surface import TritonSurface
from servelab.engine.surfaces.vllm import keys
from servelab.engine.surfaces.vllm import logs as vllm_logs


@dataclass(frozen=True, slots=True)
class Outside:
    """What one engine looks like from outside.

    ``exporter`` is made of the engine, its gauges, and the Unix time it was made at.
    """

    surface: Callable[[Host], Surface]
    exporter: Callable[[EngineSpec, Load, float], Exporter]
    log: Log


_VLLM = Outside(keys.surface, vllm_metrics.exporter, cast(Log, vllm_logs))
_KSERVE = Outside(KserveSurface, vllm_metrics.exporter, cast(Log, kserve_logs))
_SGLANG = Outside(SglangSurface, sglang_metrics.exporter, cast(Log, sglang_logs))
_TENSORRT_LLM = Outside(
    TensorrtLlmSurface, tensorrt_llm_metrics.exporter, cast(Log, tensorrt_llm_logs)
)
_TGI = Outside(TgiSurface, tgi_metrics.exporter, tgi_logs.TgiLog())
_TGI_JSON = Outside(TgiSurface, tgi_metrics.exporter, tgi_logs.TgiLog(as_json=True))
_TRITON = Outside(TritonSurface, triton_metrics.exporter, cast(Log, triton_logs))
_NIM = Outside(NimSurface, nim_metrics.exporter, cast(Log, nim_logs))
_OUTSIDES = {
    EngineType.VLLM: _VLLM,
    EngineType.SGLANG: _SGLANG,
    EngineType.TENSORRT_LLM: _TENSORRT_LLM,
    EngineType.TGI: _TGI,
    EngineType.TRITON: _TRITON,
    EngineType.NIM: _NIM,
}


def of(engine: EngineType, options: Iterable[tuple[str, str]] = ()) -> Outside:
    """The outside of an engine; ``options`` are those of its launch."""
    given = dict(options)
    if kserve.FRONT_END in given.items():
        return _KSERVE
    if engine is EngineType.TGI and given.get("json-output", "false") != "false":
        return _TGI_JSON
    return _OUTSIDES.get(engine, _VLLM)
