"""vLLM's metric names by version, held against lists out of its wheels and of a recording."""

import random
from pathlib import Path

import pytest

from modelserve.engines import vllm
from servelab.engine import assembly
from servelab.engine.checks import exposition
from servelab.engine.core.config import CoreConfig
from servelab.engine.core.laws import SteadyLaw
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.engine.metrics import vllm_names
from servelab.engine.metrics.vllm import Exporter
from servelab.engine.metrics.vllm_names import Names
from servelab.engine.metrics.vllm_values import CacheConfig

GOLDEN = Path(__file__).parents[4] / "golden" / "metrics"
IMAGE = "vllm/vllm-openai:v"
LISTS = ("0.6.3", "0.8.5", "0.10.2", "0.11.2-hidden", "0.14.1-hidden", "0.15.1", "0.33.0")


def worked(names: Names) -> Exporter:
    config = CoreConfig(2, 512, 8192, kv_blocks=1000)
    core = EngineCore(config, SteadyLaw(0.01), random.Random(0))
    exporter = Exporter(core, "llama-8b", CacheConfig(16, 1000, 0.9), 8192, 1.7e9, names)
    core.submit(CoreRequest("a", 100, 5), 0.0)
    exporter.observe(core.advance(1.0))
    exporter.count_request(1, 5)
    return exporter


def of(version: str) -> Names:
    tag, _, hidden = version.partition("-")
    major, minor, _ = tag.split(".")
    options = {vllm_names.SHOW_HIDDEN: f"{major}.{int(minor) - 1}"} if hidden else {}
    return vllm_names.of(IMAGE + tag, options)


def value(text: str, name: str) -> float:
    (line,) = [line for line in text.splitlines() if line.startswith(name + "{")]
    return float(line.split()[-1])


@pytest.mark.parametrize("version", LISTS)
def test_all_families_are_those_of_the_version(version: str) -> None:
    real = exposition.listed(GOLDEN / f"vllm-{version}.txt")
    ours = [
        family
        for family in exposition.exported(worked(of(version)).render())
        if not family.name.endswith("_created")
        and (family.name != "vllm:cache_config_info" or version == "0.33.0")
    ]
    assert exposition.differences(real, ours) == []


def test_old_names_tell_todays_figures() -> None:
    text = worked(of("0.6.3")).render()
    assert '\nvllm:time_per_output_token_seconds_count{model_name="llama-8b"} 4.0\n' in text
    assert '\nvllm:num_requests_swapped{model_name="llama-8b"} 0.0\n' in text
    assert "inter_token" not in text
    assert value(text, "vllm:avg_prompt_throughput_toks_per_s") > 0


def test_all_names_at_once_where_that_is_asked_for() -> None:
    text = worked(vllm_names.of(IMAGE + "0.33.0", {vllm_names.ALSO_OLD: ""})).render()
    told = {family.name.removeprefix("vllm:") for family in exposition.exported(text)}
    wire = {name: f"{name}_total" for name in ("tokens", "gpu_prefix_cache_hits")}
    for name, life in vllm_names.LIVES.items():
        if life.until is not None and not name.startswith("gpu_prefix_cache_"):
            assert wire.get(name, name) in told
    assert "gpu_prefix_cache_hits_total" in told


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.6.3.post1", (0, 6, 3)),
        ("docker.io/vllm/vllm-openai:0.9.2-cu128", (0, 9, 2)),
        ("vllm/vllm-openai:v0.10", (0, 10, 0)),
        ("vllm/vllm-openai:latest", vllm_names.CURRENT),
        ("vllm/vllm-openai:v0.34.0", vllm_names.CURRENT),
        ("kserve/huggingfaceserver:v0.15.0", vllm_names.CURRENT),
        ("", vllm_names.CURRENT),
    ],
)
def test_the_version_is_the_tags(image: str, version: vllm_names.Version) -> None:
    assert vllm_names.version_of(image) == version


@pytest.mark.parametrize("given", ["0.9", "0.11", "1.0", ""])
def test_hidden_names_show_for_the_minor_version_before_alone(given: str) -> None:
    names = vllm_names.of(IMAGE + "0.11.0", {vllm_names.SHOW_HIDDEN: given})
    assert not names.has("gpu_cache_usage_perc")


def test_a_containers_image_and_flags_settle_the_names() -> None:
    words = ["vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct"]
    container = {
        "name": "engine",
        "image": IMAGE + "0.11.0",
        "command": [*words, "--show-hidden-metrics-for-version=0.10"],
        "env": [{"name": vllm.OLD_METRIC_NAMES, "value": "1"}],
    }
    spec = assembly.build(container, {}, "NVIDIA-H100-80GB-HBM3", seed=0)
    names = vllm_names.of(spec.image, dict(spec.options))
    assert names == Names((0, 11, 0), shows_hidden=True, also_old=True)
