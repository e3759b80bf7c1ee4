"""The engines by type: their modules and profiles."""

from collections.abc import Mapping
from typing import Protocol, cast

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus
from modelserve.engines import (
    commandline,
    kserve,
    nim,
    sglang,
    tensorrt_llm,
    tgi,
    triton,
    types,
    vllm,
)


class EngineModule(Protocol):
    """What each engine's module offers."""

    PROFILE: types.Profile

    def render(self, spec: types.LaunchSpec) -> types.Words:
        """The command line of a launch."""

    def recognise(self, container: commandline.Container) -> commandline.Flags | None:
        """The flags of a container that starts this engine, else None."""

    def read(self, flags: commandline.Flags, env: Mapping[str, str]) -> types.Seen:
        """What flags and environment say."""

    def defaults(self, gpu: gpus.Gpu | None) -> types.Defaults:
        """What holds where they say nothing."""


# Asked in this order: a NIM is known by its image alone, so it comes last. KServe's server is vLLM
# behind another front end, and the first module of an engine is the one that it is known by.
MODULES = tuple(
    cast(EngineModule, module) for module in (vllm, kserve, sglang, tensorrt_llm, triton, tgi, nim)
)


def module(engine: EngineType) -> EngineModule:
    """The module of an engine."""
    return next(module for module in MODULES if module.PROFILE.engine is engine)


def of(engine: EngineType) -> types.Profile:
    """Metric names, paths and answers of an engine."""
    return module(engine).PROFILE
