"""Every engine's exposition can be read; promtool faults in it only names that are real."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from modelserve.api.spec import EngineType
from modelserve.engines import profiles
from servelab.engine.assembly import EngineSpec
from servelab.engine.checks import exposition as expositions
from servelab.engine.checks import lint
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.surfaces import registry

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics"
# Colons are for recording rules; all names of vLLM and SGLang have one.
COLON = "should not contain ':'"


def exposition(engine: EngineType) -> str:
    config = CoreConfig(2, 512, 2048, kv_blocks=1000)
    law = SteadyLaw(0.01)
    core = EngineCore(config, law, random.Random(0))
    spec = EngineSpec("llama-8b", "llama-8b", config, law, 0.9, 1, profiles.of(engine))
    exporter = registry.of(engine).exporter(spec, core, 1.7e9)
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.observe(list(core.advance(1.0)))
    exporter.count_request(1, 5)
    exporter.count_rejection()
    return exporter.render()


def names(faults: list[str]) -> set[str]:
    return {fault.split()[0] for fault in faults if COLON not in fault}


@pytest.mark.parametrize("engine", EngineType)
def test_it_can_be_read(engine: EngineType) -> None:
    families = list(text_string_to_metric_families(exposition(engine)))
    assert all(sample.value is not None for family in families for sample in family.samples)


@pytest.mark.parametrize("engine", EngineType)
def test_only_names_of_the_real_engine_break_the_rules(engine: EngineType) -> None:
    real = {
        family.name
        for path in GOLDEN.glob(f"{engine}-*.txt")
        for family in expositions.listed(path)
    }
    assert names(lint.problems(exposition(engine))) <= real


@pytest.mark.skipif(shutil.which("promtool") is None, reason="no promtool here")
@pytest.mark.parametrize("engine", EngineType)
def test_promtool_says_the_same(engine: EngineType) -> None:
    text = exposition(engine)
    command = ["promtool", "check", "metrics"]
    told = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert sorted(told.stderr.splitlines()) == sorted(lint.problems(text))
