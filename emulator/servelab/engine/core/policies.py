"""From a configuration to the scheduler it names."""

from collections.abc import Callable, Mapping

from servelab.engine.core.batch import Batch
from servelab.engine.core.config import CoreConfig, Policy
from servelab.engine.core.schedule import Scheduler, VllmScheduler
from servelab.engine.core.sglang import SglangScheduler
from servelab.engine.core.tensorrt_llm import NoEvictScheduler

_BY_POLICY: Mapping[Policy, Callable[[CoreConfig, Batch], Scheduler]] = {
    Policy.VLLM: VllmScheduler,
    Policy.SGLANG: SglangScheduler,
    Policy.NO_EVICT: NoEvictScheduler,
    # Packs as vLLM does, and pauses the last that started.
    Policy.MAX_UTILIZATION: VllmScheduler,
}


def scheduler(config: CoreConfig, batch: Batch) -> Scheduler:
    """The rules of the configuration's policy over a batch."""
    return _BY_POLICY[config.policy](config, batch)
