"""What is told of an engine beside its own command line: hardware, time, chance, addresses."""

import shlex
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from modelserve.api import names
from modelserve.api.spec import BatchingMode
from servelab.engine import assembly

DEFAULT_GPU = "NVIDIA-H100-80GB-HBM3"
DEFAULT_HOST = "127.0.0.1"


class Settings(BaseModel):
    """One engine's surroundings. Durations in ``_s`` are emulated, ``drain_seconds`` real."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = ""  # left out: the name it serves under
    command: tuple[str, ...] = ()  # a whole command line of any engine
    image: str = ""
    gpu: str = DEFAULT_GPU
    host: str = DEFAULT_HOST
    port: Annotated[int, Field(ge=0, le=65_535)] | None = None  # None: the engine's own
    seed: int = 0
    jitter: Annotated[float, Field(ge=0, le=0.5)] = assembly.STEP_JITTER
    time_scale: Annotated[float, Field(gt=0, le=100_000)] = 1.0
    start: Literal["now", "cold"] = "now"
    storage_class: str | None = None
    warm_up_seconds: Annotated[float, Field(ge=0, le=86_400)] | None = None
    batching: BatchingMode = BatchingMode.CONTINUOUS
    model_config_file: Path | None = None
    drain_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0

    @pydantic.field_validator("command", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        """A command may be one string or a list of words, as in a pod."""
        return shlex.split(value) if isinstance(value, str) else value

    def annotations(self) -> dict[str, str]:
        """What an engine in a pod would find in the pod's annotations."""
        warm_up_s = self.warm_up_seconds
        found = {
            names.STORAGE_CLASS: self.storage_class,
            names.WARM_UP_SECONDS: None if warm_up_s is None else f"{warm_up_s:.12g}",
            names.BATCHING: self.batching.value,
        }
        return {name: value for name, value in found.items() if value is not None}
