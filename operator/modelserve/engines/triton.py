"""Triton with the TensorRT-LLM backend, behind its OpenAI front end or its own HTTP server.

``python3 openai_frontend/main.py --model-repository DIR --tokenizer MODEL``, which is what is
rendered, or ``tritonserver --model-repository DIR``. The limits stand in the model repository's
files; a pod carries them in its engine-limits annotation.
"""

from collections.abc import Mapping

from modelserve import errors
from modelserve.api.spec import EngineType
from modelserve.catalog import gpus, images, models
from modelserve.engines import commandline, types
from modelserve.engines.types import Series

_REQUESTS = "nv_trt_llm_request_metrics"

PROFILE = types.Profile(
    engine=EngineType.TRITON,
    title="Triton Inference Server",
    version="25.09",
    metrics=types.MetricNames(
        running=Series(_REQUESTS, (("request_type", "scheduled"),)),
        waiting=Series(_REQUESTS, (("request_type", "waiting"),)),
        kv_usage=Series(
            "nv_trt_llm_kv_cache_block_metrics", (("kv_cache_block_type", "fraction"),)
        ),
        success=Series("nv_inference_request_success"),
    ),
    health_path="/health/ready",
    startup_path="/health/ready",
    metrics_path="/metrics",
    metrics_port=None,
    default_port=9000,
    queue_full_status=400,
    while_loading=types.WhileLoading.REFUSED,
)

MODEL_REPOSITORY = "/models"
SWITCHES = frozenset({"enable-kserve-frontends"})
_SERVER_OPTION, TRITONSERVER = "front-end", "tritonserver"
# What a Launch's options say where Triton's own HTTP server answers.
NATIVE = (_SERVER_OPTION, TRITONSERVER)
# … and where its models answer in several responses, as a stream needs it; the backend's guide
# fills that into its models' files from a variable.
DECOUPLED = ("decoupled", "true")
_DECOUPLED_VARIABLE = "DECOUPLED_MODE"
# What only this engine has, by its own names.
OPTIONS = (
    *(_SERVER_OPTION, "default-max-tokens", "lora-separator", "tool-call-parser"),
    *("model-control-mode", "metrics-port"),
)
METRICS_PORT = 8002
# Its backend's examples name the model so: a name in a path has no slash.
ENSEMBLE = "ensemble"
# What a repository in an image for language models holds that nothing names: our choice.
UNNAMED = "meta-llama/Llama-3.1-8B-Instruct"
# Where images for TensorRT-LLM are told their model.
MODEL_VARIABLES = ("MODEL_ID", "MODEL_NAME", "HF_MODEL", "TOKENIZER_DIR", "TOKENIZER")
FRONT_END = "/opt/tritonserver/python/openai/openai_frontend/main.py"


def render(spec: types.LaunchSpec) -> types.Words:
    """The OpenAI front end over a model repository at ``/models``."""
    args = (
        f"--model-repository={MODEL_REPOSITORY}",
        f"--tokenizer={spec.model.name}",
        "--backend=tensorrtllm",
        "--host=0.0.0.0",
        f"--openai-port={spec.port}",
    )
    limits: dict[str, str | int] = {
        "servedName": spec.served_name,
        "tensorParallel": spec.tensor_parallel,
        "maxSequences": spec.max_sequences,
        "maxBatchedTokens": spec.max_batched_tokens,
        "maxModelLength": spec.max_model_tokens,
    }
    if spec.quantization != "none":
        limits["quantization"] = spec.quantization.value
    return types.Words(
        command=("python3", FRONT_END), args=(*args, *spec.extra_args), env={}, limits=limits
    )


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of the OpenAI front end, or of a ``tritonserver`` that serves a known model."""
    for index, word in enumerate(container.words):
        if word.endswith("openai_frontend/main.py"):
            words = commandline.until_operator(container.words[index + 1 :])
            return commandline.flags(words, SWITCHES)
    own_words = commandline.after(container.words, TRITONSERVER)
    if own_words is None:
        return None
    flags = commandline.flags(own_words, SWITCHES)
    model = _served_model(flags, container.env)
    if model is None and _serves_language(container.image):
        model = UNNAMED
    if model is None:
        return None
    own = {"tokenizer": model, _SERVER_OPTION: TRITONSERVER}
    return commandline.Flags({**flags.values, **own}, flags.positionals)


def _serves_language(image: str) -> bool:
    """Whether it is Triton's own image with a backend for language models, as its tag says."""
    repository, tag = images.split(image)
    ours = repository.rpartition("/")[2] == TRITONSERVER
    return ours and any(backend in tag for backend in ("trtllm", "vllm"))


def _served_model(flags: commandline.Flags, env: Mapping[str, str]) -> str | None:
    """The language model of a server's repository, as far as its surroundings name it.

    Servers of other models are none of ours.
    """
    folder = (flags.text("model-repository", "model-store") or "").rstrip("/").rpartition("/")[2]
    named = (*(env.get(key, "") for key in MODEL_VARIABLES), folder)
    for name in filter(None, named):
        try:
            return models.find(name).name
        except errors.UnknownName:
            continue
    return None


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """What the command line says: the tokenizer names the model."""
    options = [(name, flags.text(name)) for name in OPTIONS]
    if flags.on("enable-kserve-frontends"):
        options.append(("kserve-http-port", flags.text("kserve-http-port") or "8000"))
    if env.get(_DECOUPLED_VARIABLE, "").lower() == "true":
        options.append(DECOUPLED)
    native = flags.text(_SERVER_OPTION) == TRITONSERVER
    port = flags.count("http-port") or 8000 if native else flags.count("openai-port")
    return types.Seen(
        model=flags.text("tokenizer"),
        served_name=ENSEMBLE if native else None,
        port=port,
        options=tuple((name, value) for name, value in options if value),
    )


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """Of the TensorRT-LLM backend; the front end listens on 9000."""
    return types.Defaults(max_sequences=2048, max_batched_tokens=8192, port=9000)


def metrics_port(options: Mapping[str, str]) -> int:
    """Where Triton's own server tells its metrics, by a launch's options."""
    told = options.get("metrics-port", "")
    return int(told) if told.isdecimal() else METRICS_PORT
