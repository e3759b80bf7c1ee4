"""Run:ai's streamer, with which vLLM and SGLang can load weights: who of a replica reads what.

Each rank streams the whole checkpoint, unless ``distributed`` of the loader's configuration has the
ranks divide it and hand each other the parts (vLLM 0.33, SGLang 0.5.23; off if not told).
"""

import json

from modelserve.api.spec import Loader, Quantization
from modelserve.engines import commandline, types

FORMAT = "runai_streamer"
_CONFIGURATION = "model-loader-extra-config"
# The option of a launch whose ranks each stream the whole checkpoint.
UNDIVIDED = ("load-format", FORMAT)


def render(spec: types.LaunchSpec) -> list[str]:
    """The arguments of a launch that streams. What is quantised at load has a loader of its own."""
    if spec.loader is not Loader.STREAMING or spec.quantization is Quantization.INT4:
        return []
    divided = [f'--{_CONFIGURATION}={{"distributed":true}}'] if spec.tensor_parallel > 1 else []
    return [f"--load-format={FORMAT}", *divided]


def options(flags: commandline.Flags, ranks: int | None) -> tuple[tuple[str, str], ...]:
    """What a launch keeps of a command line with so many ranks."""
    streams = flags.text("load-format") == FORMAT and (ranks or 1) > 1
    return (UNDIVIDED,) if streams and not _divides(flags.text(_CONFIGURATION)) else ()


def whole_reads(launch: types.Launch) -> int:
    """How often a replica reads its checkpoint: once, or once a rank."""
    return launch.tensor_parallel if UNDIVIDED in launch.options else 1


def _divides(text: str | None) -> bool:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("distributed") is True
