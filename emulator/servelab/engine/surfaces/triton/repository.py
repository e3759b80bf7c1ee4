"""What Triton says of its models: metadata, configuration, index.

The repository is that of the TensorRT-LLM backend's guide (all_models/inflight_batcher_llm).
"""

from dataclasses import dataclass
from typing import Any

from modelserve.errors import ModelServeError
from servelab.engine.exchange import Response
from servelab.engine.metrics import triton as metrics
from servelab.engine.surfaces import fastapi

VERSION = "2.61.0"
EXTENSIONS = (
    *("classification", "sequence", "model_repository"),
    *("model_repository(unload_dependents)", "schedule_policy", "model_configuration"),
    *("system_shared_memory", "cuda_shared_memory", "binary_tensor_data", "parameters"),
    *("statistics", "trace", "logging"),
)
# The ensemble's inputs: name, type, dimensions; the first two must be there.
_STRING, _INT32, _FP32, _BOOL = "STRING", "INT32", "FP32", "BOOL"
INPUTS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("text_input", _STRING, (1,)),
    ("max_tokens", _INT32, (1,)),
    ("decoder_text_input", _STRING, (1,)),
    *((name, _INT32, (1,)) for name in ("num_return_sequences", "end_id", "pad_id", "top_k")),
    *((name, _STRING, (-1,)) for name in ("bad_words", "stop_words", "embedding_bias_words")),
    *((name, _FP32, (1,)) for name in ("top_p", "temperature", "length_penalty")),
    *((name, _FP32, (1,)) for name in ("repetition_penalty", "presence_penalty")),
    ("frequency_penalty", _FP32, (1,)),
    *((name, _INT32, (1,)) for name in ("min_tokens", "beam_width", "prompt_vocab_size")),
    *((name, "UINT64", (1,)) for name in ("seed", "prompt_table_extra_id", "lora_task_id")),
    *((name, _BOOL, (1,)) for name in ("exclude_input_in_output", "stream")),
    *((f"return_{name}", _BOOL, (1,)) for name in ("log_probs", "context_logits")),
    *((f"return_{name}", _BOOL, (1,)) for name in ("generation_logits", "perf_metrics")),
    *((f"return_num_{name}_tokens", _BOOL, (1,)) for name in ("input", "output")),
    *((name, "FP16", (-1, -1)) for name in ("prompt_embedding_table", "lora_weights")),
    ("embedding_bias_weights", _FP32, (-1,)),
    ("lora_config", _INT32, (-1, 3)),
    *((name, _STRING, (1,)) for name in ("guided_decoding_guide_type", "guided_decoding_guide")),
)
REQUIRED = ("max_tokens", "text_input")
OUTPUTS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("text_output", _STRING, (-1,)),
    ("cum_log_probs", _FP32, (-1,)),
    ("output_log_probs", _FP32, (-1, -1)),
    *((name, _INT32, (1,)) for name in ("batch_index", "sequence_index")),
    *((f"num_{name}_tokens", _INT32, (1,)) for name in ("input", "output")),
)


class TritonError(ModelServeError):
    """An error in Triton's shape."""

    def __init__(self, message: str, status: int = 400) -> None:
        self.status = status
        super().__init__(message)

    def response(self) -> Response:
        """The whole answer."""
        return fastapi.document({"error": str(self)}, self.status)


@dataclass(frozen=True, slots=True)
class Repository:
    """The models of a server; ``max_batch_size`` as the ensemble has it."""

    served_name: str
    max_batch_size: int

    @property
    def names(self) -> tuple[str, ...]:
        """All models, the ensemble first."""
        return (self.served_name, *metrics.STEPS)

    def check(self, model: str, version: str) -> None:
        """Raises TritonError where there is no such model or version."""
        if model not in self.names:
            raise TritonError(f"Request for unknown model: '{model}' is not found")
        if version not in ("", metrics.VERSION):
            message = f"Request for unknown model: '{model}' version {version} is not found"
            raise TritonError(message, 404)

    def index(self) -> list[dict[str, str]]:
        """Every model and its state, by name."""
        return [
            {"name": name, "version": metrics.VERSION, "state": "READY"}
            for name in sorted(self.names)
        ]

    def metadata(self, model: str) -> dict[str, Any]:
        """A model's inputs and outputs; those of the steps are not told here."""
        whole = model == self.served_name
        return {
            "name": model,
            "versions": [metrics.VERSION],
            "platform": "ensemble" if whole else _backend(model),
            "inputs": [_tensor(*each) for each in INPUTS] if whole else [],
            "outputs": [_tensor(*each) for each in OUTPUTS] if whole else [],
        }

    def config(self, model: str) -> dict[str, Any]:
        """A model's configuration; those of its parts that a client of text meets."""
        whole = model == self.served_name
        return {
            "name": model,
            "platform": "ensemble" if whole else "",
            "backend": "" if whole else _backend(model),
            "runtime": "",
            "version_policy": {"latest": {"num_versions": 1}},
            "max_batch_size": self.max_batch_size,
            "input": [_io(*each) for each in INPUTS] if whole else [],
            "output": [_io(*each) for each in OUTPUTS] if whole else [],
            "default_model_filename": "",
            "cc_model_filenames": {},
            "metric_tags": {},
            "parameters": {},
            "model_warmup": [],
        }


def server_metadata() -> dict[str, Any]:
    """Of the server."""
    return {"name": "triton", "version": VERSION, "extensions": list(EXTENSIONS)}


def _backend(model: str) -> str:
    return "tensorrtllm" if model == metrics.BACKEND_MODEL else "python"


def _tensor(name: str, kind: str, shape: tuple[int, ...]) -> dict[str, Any]:
    datatype = "BYTES" if kind == _STRING else kind
    return {"name": name, "datatype": datatype, "shape": [-1, *shape]}


def _io(name: str, kind: str, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"name": name, "data_type": f"TYPE_{kind}", "dims": list(shape)}
