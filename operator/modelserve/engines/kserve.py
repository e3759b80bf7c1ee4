"""KServe's model server around vLLM: ``python -m huggingfaceserver`` with vLLM's flags and its own.

The engine is vLLM's; health, paths and the port are KServe's (0.20, python/huggingfaceserver).
"""

import dataclasses
from collections.abc import Mapping, Sequence

from modelserve.catalog import gpus, images
from modelserve.engines import arguments, commandline, types, vllm

# What a Launch's options say where this server stands before the engine.
FRONT_END = ("front-end", "kserve")
PORT = 8080

PROFILE = dataclasses.replace(
    vllm.PROFILE,
    title="KServe with vLLM",
    version="0.20",
    health_path="/v2/health/ready",
    startup_path="/v2/health/ready",
    default_port=PORT,
)

# The server's own flags that are vLLM's under another name.
_OWN_NAMES = {
    "model-id": "model",
    "model-dir": "model",
    "model-name": "served-model-name",
    "http-port": "port",
    "max-length": "max-model-len",
}
# Where a model lies that is not named.
MODEL_DIRECTORY = "/mnt/models"
SERVED_NAME = "model"


def render(spec: types.LaunchSpec) -> types.Words:
    """The server's command line; ``engines`` renders vLLM's own wherever it may choose."""
    given = vllm.render(spec)
    flags = (word.replace("--port=", "--http_port=") for word in given.args[2:])
    return types.Words(
        command=("python3", "-m", "huggingfaceserver"),
        args=(f"--model_id={spec.model.name}", *flags),
    )


def recognise(container: commandline.Container) -> commandline.Flags | None:
    """The flags of the server's module, or of its image started with args alone."""
    words = commandline.after(container.words, "-m", "huggingfaceserver")
    repository = images.split(container.image)[0].rpartition("/")[2]
    if words is None and not container.has_command and repository == "huggingfaceserver":
        words = container.words
    if words is None:
        return None
    table = arguments.load(f"vllm-{vllm.VERSION}")
    return arguments.parse(table, _as_vllm(words), "__main__.py", lenient=True)


def _as_vllm(words: Sequence[str]) -> list[str]:
    """The words with vLLM's names for what the server calls otherwise."""
    given = {_name(word) for word in words}
    told: list[str] = []
    for word in words:
        name, own = _name(word), _OWN_NAMES.get(_name(word))
        # vLLM's own flag for the name goes before the server's.
        kept = own is None or own not in given
        told.append(f"--{own}{word[len(name) + 2 :]}" if own and kept else word)
    for name, default in (("model", MODEL_DIRECTORY), ("served-model-name", SERVED_NAME)):
        if name not in {_name(word) for word in told}:
            told.append(f"--{name}={default}")
    return told


def _name(word: str) -> str:
    """A long flag's name; empty if the word is none."""
    return word[2:].partition("=")[0].replace("_", "-") if word.startswith("--") else ""


def read(flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
    """As vLLM's."""
    seen = vllm.read(flags, env)
    return dataclasses.replace(seen, options=(*seen.options, FRONT_END))


def defaults(gpu: gpus.Gpu | None) -> types.Defaults:
    """vLLM's own, on another port."""
    return dataclasses.replace(vllm.defaults(gpu), port=PORT)
