"""What vLLM 0.33 repeats of its arguments as it starts, and the routes that it lists.

After vllm/entrypoints/common/startup.py, ``VllmConfig.__str__`` and a start of the real server.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from modelserve.api.spec import Quantization
from modelserve.engines import launch, vllm

_LOGO = (
    "",
    "       █     █     █▄   ▄█",
    " ▄▄ ▄█ █     █     █ ▀▄▀ █  version {version}",
    "  █▄█▀ █     █     █     █  model   {model}",
    "   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀",
    "",
)
# Of a server that generates.
_DOCUMENTS = ("/openapi.json", "/docs", "/docs/oauth2-redirect", "/redoc")
_ROUTES = (
    *("/load GET", "/version GET", "/kv_event_sources GET", "/health GET", "/metrics GET"),
    *("/tokenize POST", "/detokenize POST", "/v1/models GET", "/v1/systemone POST"),
    *("/v1/decisions POST", "/ping GET", "/ping POST", "/invocations POST"),
    *("/v1/chat/completions POST", "/v1/chat/completions/batch POST", "/v1/responses POST"),
    *("/v1/responses/{response_id} GET", "/v1/responses/{response_id}/cancel POST"),
    *("/v1/completions POST", "/v1/messages POST", "/v1/messages/count_tokens POST"),
    *("/generative_scoring POST", "/scale_elastic_ep POST", "/is_scaling_elastic_ep POST"),
    *("/v1/chat/completions/render POST", "/v1/messages/render POST"),
    *("/v1/completions/render POST", "/v1/responses/render POST"),
    *("/v1/chat/completions/derender POST", "/v1/completions/derender POST"),
    *("/inference/v1/generate POST", "/inference/v1/abort_requests POST"),
)
_OBSERVABILITY = (
    "ObservabilityConfig(show_hidden_metrics_for_version={hidden}, otlp_traces_endpoint={traces}, "
    "collect_detailed_traces=None, per_request_spec_decode_metrics='none', kv_cache_metrics=False, "
    "kv_cache_metrics_sample=0.01, custom_histogram_buckets=None, cudagraph_metrics=False, "
    "enable_layerwise_nvtx_tracing=False, enable_mfu_metrics=False, "
    "enable_mm_processor_stats=False, enable_logging_iteration_details=False, "
    "jit_monitor_mode='warn', jit_monitor_verbose=False)"
)
_GUIDED = (
    "StructuredOutputsConfig(backend='auto', disable_any_whitespace=False, "
    "disable_additional_properties=False, reasoning_parser={parser!r}, "
    "reasoning_parser_plugin='', enable_in_reasoning=False)"
)

# What checkpoints of today are stored in, and the other names of the types.
_DTYPES = {"auto": "bfloat16", "half": "float16", "float": "float32"}
_METHODS = {Quantization.NONE: None, Quantization.FP8: "fp8", Quantization.INT4: "awq_marlin"}


def given(started: launch.Launch) -> Mapping[str, Any]:
    """The arguments that differ from their defaults, by destination."""
    text = dict(started.options).get(vllm.NON_DEFAULTS, "{}")
    found: Mapping[str, Any] = json.loads(text)
    return found


def logo(version: str, model: str) -> Sequence[str]:
    """The lines that begin the log."""
    return [line.format(version=version, model=model) for line in _LOGO]


def non_defaults(arguments: Mapping[str, Any]) -> str:
    """``non-default args: {…}``; an adapter shows as an object of its class."""
    shown = {
        name: [_Adapter(each) for each in value] if name == "lora_modules" else value
        for name, value in arguments.items()
    }
    return f"non-default args: {shown}"


def config(started: launch.Launch) -> str:
    """What an engine says of its configuration, but for the compiler's and the kernels'.

    Those depend on what the GPU has kernels for.
    """
    said, model = given(started), started.model.name
    parts = {
        "model": repr(model),
        "speculative_config": said.get("speculative_config"),
        "tokenizer": repr(said.get("tokenizer", model)),
        "skip_tokenizer_init": said.get("skip_tokenizer_init", False),
        "tokenizer_mode": said.get("tokenizer_mode", "auto"),
        "revision": said.get("revision"),
        "tokenizer_revision": said.get("tokenizer_revision"),
        "trust_remote_code": said.get("trust_remote_code", False),
        "dtype": f"torch.{_DTYPES.get(dtype := said.get('dtype', 'auto'), dtype)}",
        "max_seq_len": started.max_model_tokens,
        "download_dir": repr(said.get("download_dir")),
        "load_format": said.get("load_format", "auto"),
        "tensor_parallel_size": started.tensor_parallel,
        "pipeline_parallel_size": said.get("pipeline_parallel_size", 1),
        "data_parallel_size": said.get("data_parallel_size", 1),
        "decode_context_parallel_size": said.get("decode_context_parallel_size", 1),
        "dcp_comm_backend": said.get("dcp_comm_backend", "ag_rs"),
        "disable_custom_all_reduce": said.get("disable_custom_all_reduce", False),
        "quantization": said.get("quantization", _METHODS[started.quantization]),
        "quantization_config": said.get("quantization_config"),
        "enforce_eager": started.enforce_eager,
        "aux_output_config": "AuxOutputConfig(enable_return_routed_experts="
        f"{said.get('enable_return_routed_experts', False)}, max_bytes=None)",
        "kv_cache_dtype": said.get("kv_cache_dtype", "auto"),
        "device_config": "cuda",
        "structured_outputs_config": _GUIDED.format(parser=said.get("reasoning_parser", "")),
        "observability_config": _OBSERVABILITY.format(
            hidden=repr(said.get("show_hidden_metrics_for_version")),
            traces=repr(said.get("otlp_traces_endpoint")),
        ),
        "seed": said.get("seed", 0),
        "served_model_name": started.served_name,
        "enable_prefix_caching": started.prefix_caching,
        "enable_chunked_prefill": said.get("enable_chunked_prefill", True),
        "pooler_config": said.get("pooler_config"),
    }
    return ", ".join(f"{name}={value}" for name, value in parts.items())


def address(started: launch.Launch) -> str:
    """Where the server listens."""
    said = given(started)
    if path := said.get("uds"):
        return f"unix:{path}"
    host = said.get("host") or "0.0.0.0"
    scheme = "https" if "ssl_keyfile" in said and "ssl_certfile" in said else "http"
    port = said.get("port", started.port)
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def routes(*, documents: bool) -> Sequence[str]:
    """The paths with their methods, in the order of the real list."""
    first = [f"Route: {path}, Methods: GET, HEAD" for path in _DOCUMENTS if documents]
    rest = (route.rsplit(" ", 1) for route in _ROUTES)
    return [*first, *(f"Route: {path}, Methods: {methods}" for path, methods in rest)]


class _Adapter:
    """A LoRA adapter as vLLM shows it."""

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._told = told

    def __repr__(self) -> str:
        default = {"name": "", "path": "", "base_model_name": None, "is_3d_lora_weight": False}
        fields = ", ".join(
            f"{key}={value!r}" for key, value in (default | dict(self._told)).items()
        )
        return f"LoRAModulePath({fields})"
