"""How the engines log, by type: apart from what else they are, for the kubelet needs no more."""

from collections.abc import Iterable
from typing import cast

from modelserve.api.spec import EngineType
from modelserve.engines import kserve
from servelab.engine.surfaces.kserve import logs as kserve_logs
from servelab.engine.surfaces.nim import logs as nim_logs
from servelab.engine.surfaces.sglang import logs as sglang_logs
from servelab.engine.surfaces.surface import Log
from servelab.engine.surfaces.tensorrt_llm import logs as tensorrt_llm_logs
from servelab.engine.surfaces.tgi import logs as tgi_logs
from servelab.engine.surfaces.triton import logs as triton_logs
from servelab.engine.surfaces.vllm import logs as vllm_logs

VLLM = cast(Log, vllm_logs)
KSERVE = cast(Log, kserve_logs)
TGI_JSON: Log = tgi_logs.TgiLog(as_json=True)
_LOGS: dict[EngineType, Log] = {
    EngineType.VLLM: VLLM,
    EngineType.SGLANG: cast(Log, sglang_logs),
    EngineType.TENSORRT_LLM: cast(Log, tensorrt_llm_logs),
    EngineType.TGI: tgi_logs.TgiLog(),
    EngineType.TRITON: cast(Log, triton_logs),
    EngineType.NIM: cast(Log, nim_logs),
}


def of(engine: EngineType, options: Iterable[tuple[str, str]] = ()) -> Log:
    """How an engine logs; ``options`` are those of its launch."""
    given = dict(options)
    if kserve.FRONT_END in given.items():
        return KSERVE
    if engine is EngineType.TGI and given.get("json-output", "false") != "false":
        return TGI_JSON
    return _LOGS.get(engine, VLLM)
