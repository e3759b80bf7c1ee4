"""TGI's metrics: names and buckets as its source has them, figures that agree with what ran."""

import random
from pathlib import Path

from servelab.engine.checks import exposition, lint
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest, Output
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics.tgi import Exporter

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics" / "tgi-3.3.7.txt"


def engine() -> tuple[EngineCore, Exporter]:
    config = CoreConfig(4, 512, 2048, kv_blocks=1000)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    return core, Exporter(core, 2047, 2048, 16_000)


def run(core: EngineCore, exporter: Exporter, until_s: float) -> list[Output]:
    outputs = list(core.advance(until_s))
    exporter.observe(outputs)
    for output in outputs:
        exporter.count_answered(output.finished)
    return outputs


def worked() -> Exporter:
    core, exporter = engine()
    for name, at_s in (("a", 0.0), ("b", 0.03)):
        run(core, exporter, at_s)
        exporter.count_arrival()
        exporter.count_validated(100, 5)
        core.submit(CoreRequest(name, 100, 5), at_s)
    run(core, exporter, 1.0)
    exporter.count_failure("validation")
    return exporter


def test_a_fresh_engine_exports_nothing() -> None:
    assert engine()[1].render() == ""


def test_all_families_are_the_routers() -> None:
    ours = exposition.exported(worked().render())
    assert exposition.differences(exposition.listed(GOLDEN), ours) == []


def test_figures_agree_with_what_ran() -> None:
    text = worked().render()
    assert "\ntgi_request_success 2\n" in text
    assert "\ntgi_request_generated_tokens_sum 10\n" in text
    assert '\ntgi_batch_inference_count{method="prefill"} 2\n' in text
    assert "\ntgi_request_input_length_sum 200\n" in text
    assert "\ntgi_queue_size 0\n" in text


def test_the_names_that_promtool_faults_are_the_real_ones() -> None:
    faults = lint.problems(worked().render())
    assert {fault.split()[0] for fault in faults} == {
        *("tgi_request_count", "tgi_request_success", "tgi_request_failure"),
        *("tgi_batch_inference_count", "tgi_batch_inference_success", "tgi_batch_concat"),
        "tgi_batch_concat_duration",
    }
