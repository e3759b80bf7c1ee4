"""NIM's metrics: names and buckets as recorded, figures that agree with what ran."""

import random
from pathlib import Path

from servelab.engine.checks import exposition, lint
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics.nim import Exporter

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics" / "nim-1.x.txt"


def worked() -> Exporter:
    config = CoreConfig(4, 512, 131_072, kv_blocks=10_000)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    exporter = Exporter(core, "llama-8b", 4, 131_072)
    for name in "ab":
        core.submit(CoreRequest(name, 100, 5), 0.0)
    exporter.observe(list(core.advance(1.0)))
    exporter.count_answer(400)
    exporter.count_answer(500)
    return exporter


def test_all_families_are_the_recorded_ones() -> None:
    ours = exposition.exported(worked().render())
    assert exposition.differences(exposition.listed(GOLDEN), ours) == []


def test_figures_agree_with_what_ran() -> None:
    text = worked().render()
    labels = '{model_name="llama-8b"}'
    assert f"\nprompt_tokens_total{labels} 200.0\n" in text
    assert f"\ngeneration_tokens_total{labels} 10.0\n" in text
    assert f"\ntime_per_output_token_seconds_count{labels} 8.0\n" in text
    assert '\nrequest_finish_total{finished_reason="length",model_name="llama-8b"} 2.0\n' in text
    assert f"\nrequest_failure_total{labels} 1.0\n" in text
    assert f"\nnum_request_max{labels} 4.0\n" in text


def test_promtool_faults_nothing() -> None:
    assert lint.problems(worked().render()) == []


def test_no_time_of_creation_is_told() -> None:
    assert "_created" not in worked().render()
