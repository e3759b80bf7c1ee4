"""What is asked: a model on GPUs, under an engine, read from a storage class."""

from dataclasses import dataclass

from modelserve.api.spec import EngineType, Loader, Quantization
from modelserve.catalog import gpus, images
from modelserve.catalog.models import Model
from modelserve.engines import context, launch, profiles, steplaw, types
from modelserve.errors import InputError


@dataclass(frozen=True, slots=True)
class Question:
    """One set-up and the typical request on it; ``storage_class`` None is the catalogue's own."""

    model: Model
    gpu: gpus.Gpu
    tensor_parallel: int = 1
    quantization: Quantization = Quantization.NONE
    engine: EngineType = EngineType.VLLM
    storage_class: str | None = None
    loader: Loader = Loader.DEFAULT
    max_model_tokens: int = context.DEFAULT_TOKENS
    input_tokens: int = 512
    output_tokens: int = 256

    def __post_init__(self) -> None:
        asked = self.input_tokens + self.output_tokens
        if self.max_model_tokens > self.model.max_context_tokens:
            raise InputError(
                f"{self.model.name} has a context of {self.model.max_context_tokens} tokens, "
                f"less than {self.max_model_tokens}: lower --max-model-len"
            )
        if asked > self.max_model_tokens:
            raise InputError(
                f"a request of {self.input_tokens} + {self.output_tokens} tokens is longer than "
                f"the {self.max_model_tokens} of --max-model-len: shorten it or raise that"
            )

    def launch(self) -> launch.Launch:
        """The engine as it would be started, with its own defaults. Raises UnknownName."""
        defaults = profiles.module(self.engine).defaults(self.gpu)
        return launch.resolve(
            types.LaunchSpec(
                engine=self.engine,
                model=self.model,
                served_name=self.model.name,
                tensor_parallel=self.tensor_parallel,
                quantization=self.quantization,
                max_sequences=defaults.max_sequences,
                max_batched_tokens=defaults.max_batched_tokens,
                max_model_tokens=self.max_model_tokens,
                port=defaults.port,
                image=images.of_engine(self.engine, self.gpu.amd).reference,
                storage_class=self.storage_class,
                loader=self.loader,
            )
        )

    def law(self) -> steplaw.StepLaw:
        """How long its steps take."""
        return steplaw.StepLaw.of_launch(self.launch(), self.gpu)


def max_model_tokens(model: Model, asked: int | None) -> int:
    """The longest request in tokens, where the user says nothing."""
    return asked if asked is not None else context.default_tokens(model)
