"""Whether an engine's official image has the program that its container names.

Judged are images of which it is known: those of vLLM, SGLang, TensorRT-LLM and TGI hold one engine
each. Triton's and NIM's may hold any, and so may an image that the catalogue does not know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelserve.api.spec import EngineType
from modelserve.catalog import images
from modelserve.engines import commandline, generations, triton

NOT_FOUND = "executable file not found in $PATH"
# Programs, and modules of Python, that only one engine brings.
_PROGRAMS: Mapping[str, EngineType] = {
    "vllm": EngineType.VLLM,
    "sglang": EngineType.SGLANG,
    "trtllm-serve": EngineType.TENSORRT_LLM,
    "text-generation-launcher": EngineType.TGI,
    "tritonserver": EngineType.TRITON,
}
_MODULES: Mapping[str, EngineType] = {
    "vllm": EngineType.VLLM,
    "sglang": EngineType.SGLANG,
    "tensorrt_llm": EngineType.TENSORRT_LLM,
    "text_generation_server": EngineType.TGI,
}
_HOLD_ONE = frozenset({EngineType.VLLM, EngineType.SGLANG, EngineType.TENSORRT_LLM, EngineType.TGI})
# Before, SGLang's images had vLLM too; TGI's had its kernels as long.
_SGLANG_ALONE = (0, 5)


@dataclass(frozen=True, slots=True)
class Lack:
    """What is missing, of which engine, and how a container ends that names it.

    ``start_error`` is the runtime's if it cannot even begin; else it says ``line`` and exits.
    """

    engine: EngineType
    holds: EngineType
    start_error: str = ""
    line: str = ""
    exit_code: int = 0


def lack(container: Mapping[str, Any]) -> Lack | None:
    """What a container's command names that its image has not; None if it may run."""
    read = commandline.read(container)
    image = images.find(read.image)
    command = [str(word) for word in container.get("command") or ()]
    if image is None or image.engine not in _HOLD_ONE or not command:
        return None
    for words in _statements(read.words):
        found = _lack(words, image, read.image)
        if found is not None and commandline.is_shell(command[0]) and found.start_error:
            return _of_shell(found, command[0].rpartition("/")[2], words[0])
        if found is not None:
            return found
    return None


def _statements(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """The commands of a script; one alone if it is none."""
    rest = list(words)
    while rest:
        statement = commandline.until_operator(rest)
        del rest[: len(statement) + 1]
        statement = statement[1:] if statement[:1] == ("exec",) else statement
        if statement:
            yield statement


def _lack(words: Sequence[str], image: images.Image, reference: str) -> Lack | None:
    """What one command lacks, begun by the runtime itself."""
    program, module = words[0], _module(words)
    script = words[1] if len(words) > 1 and words[1] == triton.FRONT_END else ""
    engine = _MODULES.get(module.partition(".")[0]) or _PROGRAMS.get(program.rpartition("/")[2])
    engine = EngineType.TRITON if script else engine
    if engine is None or engine is image.engine or _may_have(image, reference, engine, module):
        return None
    if module:
        return Lack(engine, image.engine, "", _no_module(program, module), 1)
    if script:
        line = f"{program}: can't open file {script!r}: [Errno 2] No such file or directory"
        return Lack(engine, image.engine, "", line, 2)
    why = f"stat {program}: no such file or directory" if "/" in program else NOT_FOUND
    return Lack(engine, image.engine, f'exec: "{program}": {why}')


def _of_shell(found: Lack, shell: str, program: str) -> Lack:
    """The same if a shell is to begin it."""
    line = f"{shell}: 1: {program}: not found"
    if shell == "bash":
        line = f"bash: line 1: {program}: command not found"
    return Lack(found.engine, found.holds, "", line, 127)


def _module(words: Sequence[str]) -> str:
    """The module that Python is to run; empty if it is none."""
    is_python = words[0].rpartition("/")[2].startswith("python")
    return words[words.index("-m") + 1] if is_python and "-m" in words[:-1] else ""


def _may_have(image: images.Image, reference: str, engine: EngineType, module: str) -> bool:
    """Whether it is not known that the image lacks it."""
    version = generations.version(images.split(reference)[1])
    if image.engine is EngineType.SGLANG and engine is EngineType.VLLM:
        return version is not None and version < _SGLANG_ALONE
    return image.engine is EngineType.TGI and bool(module)


def _no_module(python: str, module: str) -> str:
    """What Python says, of a module alone or in a package."""
    program = python if "/" in python else f"/usr/bin/{python}"
    top = module.partition(".")[0]
    if top == module:
        return f"{program}: No module named {module}"
    return (
        f"{program}: Error while finding module specification for {module!r} "
        f"(ModuleNotFoundError: No module named {top!r})"
    )
