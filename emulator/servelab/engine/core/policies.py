"""From a configuration to the scheduler it names, and the batch that it decides over."""

from collections.abc import Callable, Mapping

from servelab.engine.core.batch import Batch
from servelab.engine.core.config import ALL_TOKENS, CoreConfig, Policy
from servelab.engine.core.plans import Scheduler
from servelab.engine.core.schedule import VllmScheduler
from servelab.engine.core.sglang import SglangScheduler
from servelab.engine.core.tensorrt_llm import MaxUtilizationScheduler, NoEvictScheduler
from servelab.engine.core.windows import WindowBatch, WindowScheduler

_BY_POLICY: Mapping[Policy, Callable[[CoreConfig, Batch], Scheduler]] = {
    Policy.VLLM: VllmScheduler,
    Policy.SGLANG: SglangScheduler,
    Policy.NO_EVICT: NoEvictScheduler,
    Policy.MAX_UTILIZATION: MaxUtilizationScheduler,
}


def make(config: CoreConfig) -> tuple[Batch, Scheduler]:
    """An empty batch, and the rules of the configuration's policy over it."""
    if config.tables != ALL_TOKENS:
        windowed = WindowBatch(config)
        return windowed, WindowScheduler(config, windowed)
    batch = Batch(config)
    return batch, _BY_POLICY[config.policy](config, batch)
