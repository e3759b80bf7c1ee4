"""What Triton says of its models: metadata, configuration, index.

The repository is that of the TensorRT-LLM backend's guide (all_models/inflight_batcher_llm).
"""

from typing import Any

from servelab.engine.metrics import triton as metrics
from servelab.engine.surfaces.triton import inputs, refusals
from servelab.engine.surfaces.triton.refusals import TritonError

VERSION = "2.61.0"
EXTENSIONS = (
    *("classification", "sequence", "model_repository"),
    *("model_repository(unload_dependents)", "schedule_policy", "model_configuration"),
    *("system_shared_memory", "cuda_shared_memory", "binary_tensor_data", "parameters"),
    *("statistics", "trace", "logging"),
)


def protocol(kind: str) -> str:
    """A configuration's type as the protocol calls it."""
    return "BYTES" if kind == _STRING else kind


# The inputs of those that take text: name, type, dimensions; the first two must be there.
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


SPECS = tuple(
    inputs.Spec(name, protocol(kind), dims, name not in REQUIRED) for name, kind, dims in INPUTS
)


class Repository:
    """The models of a server; ``max_batch_size`` as the ensemble has it.

    ``explicit``: it loads and unloads models on demand.
    """

    def __init__(self, served_name: str, max_batch_size: int, *, explicit: bool = False) -> None:
        self.served_name = served_name
        self.max_batch_size = max_batch_size
        self._explicit = explicit
        self._unloaded: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """All models, the ensemble first."""
        return (self.served_name, *metrics.STEPS, metrics.BLS_MODEL)

    @property
    def loaded(self) -> tuple[str, ...]:
        """Those that serve, by name."""
        return tuple(name for name in sorted(self.names) if name not in self._unloaded)

    def takes_text(self, model: str) -> bool:
        """Whether a model takes a text, and answers with one."""
        return model in (self.served_name, metrics.BLS_MODEL)

    def ensemble(self, model: str) -> str | None:
        """The model's name if it is the ensemble."""
        return model if model == self.served_name else None

    def check(self, model: str, version: str) -> None:
        """Raises TritonError where there is no such model or version."""
        if model not in self.names:
            raise TritonError(f"Request for unknown model: '{model}' is not found")
        if version not in ("", metrics.VERSION):
            message = f"Request for unknown model: '{model}' version {version} is not found"
            raise TritonError(message, 404)
        if model in self._unloaded:
            message = f"Request for unknown model: '{model}' has no available versions"
            raise TritonError(message)

    def load(self, model: str) -> None:
        """Load it again. Raises TritonError."""
        self._check_control()
        if model not in self.names:
            message = f"failed to load '{model}', failed to poll from model repository"
            raise TritonError(message, refusals.INTERNAL)
        self._unloaded.discard(model)

    def unload(self, model: str) -> None:
        """Serve it no longer; what is not there is not served either. Raises TritonError."""
        self._check_control()
        if model in self.names:
            self._unloaded.add(model)

    def index(self, *, ready: bool = False) -> list[dict[str, str]]:
        """Every model and its state, by name; ``ready``: those alone that serve."""
        listed: list[dict[str, str]] = []
        for name in sorted(self.names):
            told = {"name": name, "version": metrics.VERSION, "state": "READY"}
            if name in self._unloaded:
                told |= {"state": "UNAVAILABLE", "reason": "unloaded"}
            if not ready or name not in self._unloaded:
                listed.append(told)
        return listed

    def _check_control(self) -> None:
        if not self._explicit:
            message = "explicit model load / unload is not allowed if polling is enabled"
            raise TritonError(message, refusals.UNAVAILABLE)

    def metadata(self, model: str) -> dict[str, Any]:
        """A model's inputs and outputs; those of the steps are not told here."""
        whole, text = model == self.served_name, self.takes_text(model)
        return {
            "name": model,
            "versions": [metrics.VERSION],
            "platform": "ensemble" if whole else _backend(model),
            "inputs": [_tensor(*each) for each in INPUTS] if text else [],
            "outputs": [_tensor(*each) for each in OUTPUTS] if text else [],
        }

    def config(self, model: str) -> dict[str, Any]:
        """A model's configuration; those of its parts that a client of text meets."""
        whole, text = model == self.served_name, self.takes_text(model)
        return {
            "name": model,
            "platform": "ensemble" if whole else "",
            "backend": "" if whole else _backend(model),
            "runtime": "",
            "version_policy": {"latest": {"num_versions": 1}},
            "max_batch_size": self.max_batch_size,
            "input": [_io(*each) for each in INPUTS] if text else [],
            "output": [_io(*each) for each in OUTPUTS] if text else [],
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
    return {"name": name, "datatype": protocol(kind), "shape": [-1, *shape]}


def _io(name: str, kind: str, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"name": name, "data_type": f"TYPE_{kind}", "dims": list(shape)}
