"""What a ModelServe says of itself: conflicts, mode Manual, and all that is wrong with its spec."""

from typing import Any

import pytest

from modelserve import errors, ports
from modelserve.render import replica_owner
from modelserve.render.replica_owner import Owner
from modelserve.testing.stage import Stage

SHORT = {"name": "meta-llama/Llama-2-7b-hf"}  # 4096 tokens


async def test_a_foreign_count_is_a_conflict_and_is_taken_back_after_the_down_window(
    stage: Stage,
) -> None:
    await stage.wake()
    await stage.scale_deployment(5)
    await stage.turn()
    assert await stage.replicas() == 5
    assert (await stage.condition("Conflict"))["reason"] == "ForeignScale"
    assert "kubectl" in (await stage.condition("Conflict"))["message"]
    await stage.clock.advance(100)
    await stage.turn()
    assert replica_owner.replicas_owner(await stage.deployment()) is Owner.SCALER
    assert await stage.replicas() == 1
    assert (await stage.condition("Conflict"))["status"] == "False"


async def test_in_mode_manual_the_count_is_what_the_spec_says(stage: Stage) -> None:
    await stage.apply(replicas=3, scaling={"mode": "Manual"})
    await stage.turn()
    assert await stage.replicas() == 3
    await stage.apply(replicas=0)
    await stage.turn()
    assert await stage.replicas() == 0
    assert not stage.gateways.fences


async def test_replicas_written_in_mode_auto_are_a_conflict_and_change_nothing(
    stage: Stage,
) -> None:
    await stage.apply(replicas=4)
    await stage.turn()
    assert await stage.replicas() == 0
    assert (await stage.condition("Conflict"))["reason"] == "ReplicasIgnored"
    assert (await stage.status())["ignoredReplicas"] == 1


async def test_leaving_mode_manual_makes_the_replicas_of_then_the_ignored_ones(
    stage: Stage,
) -> None:
    await stage.apply(replicas=3, scaling={"mode": "Manual"})
    await stage.turn()
    await stage.apply(scaling={"mode": "Auto"})
    await stage.turn()
    assert (await stage.status())["ignoredReplicas"] == 3
    assert (await stage.condition("Conflict"))["status"] == "False"


async def test_a_model_that_does_not_fit_says_how_much_is_missing_and_gets_no_children() -> None:
    stage = Stage()
    await stage.apply(model={"name": "meta-llama/Llama-3.1-70B-Instruct"})
    await stage.turn()
    ready = await stage.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "WeightsDoNotFit")
    assert "141.1 GB" in ready["message"]
    assert "tensorParallel" in ready["message"]
    assert (await stage.condition("Stalled"))["status"] == "True"
    assert stage.events.reasons() == ["InvalidSpec"]
    with pytest.raises(errors.NotFound):
        await stage.deployment()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"model": {"name": "meta-llama/Lama-9"}}, "UnknownModel"),
        ({"gpu": {"product": "H1000"}}, "UnknownGPU"),
        ({"storage": {"class": "floppy"}}, "UnknownStorageClass"),
    ],
    ids=["model", "gpu", "storage"],
)
async def test_unknown_names_are_conditions(spec: dict[str, Any], reason: str) -> None:
    stage = Stage()
    await stage.apply(**spec)
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] == reason


async def test_more_than_the_models_context_is_a_condition() -> None:
    stage = Stage()
    await stage.apply(model=SHORT, engine={"maxModelLength": 8192})
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] == "LongerThanContext"


async def test_a_length_that_is_left_out_is_told_to_the_engine_as_the_models_context() -> None:
    stage = Stage()
    await stage.apply(model=SHORT)
    await stage.turn()
    pod = (await stage.deployment())["spec"]["template"]["spec"]
    assert "--max-model-len=4096" in pod["containers"][0]["args"]


async def test_a_mended_spec_is_served(stage: Stage) -> None:
    await stage.apply(gpu={"product": "H1000"})
    await stage.turn()
    assert (await stage.condition("Ready"))["status"] == "False"
    await stage.apply(gpu={"product": "h100"})
    await stage.turn()
    assert (await stage.condition("Ready"))["status"] == "True"
    assert not await stage.condition("Stalled")


async def test_a_pool_that_is_missing_is_flagged() -> None:
    stage = Stage()
    await stage.apply()
    await stage.turn()
    assert (await stage.condition("Degraded"))["reason"] == "NoPool"
    assert (await stage.condition("Ready"))["status"] == "True"


async def test_a_cooldown_below_the_cold_start_is_flagged(stage: Stage) -> None:
    await stage.apply(scaling={"cooldownSeconds": 5})
    await stage.turn()
    assert (await stage.condition("Degraded"))["reason"] == "CooldownBelowColdStart"


async def test_somebody_elses_deployment_of_that_name_is_left_alone() -> None:
    stage = Stage()
    await stage.cluster.create(
        ports.DEPLOYMENTS, "default", {"metadata": {"name": "llama"}, "spec": {"replicas": 7}}
    )
    await stage.apply()
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] == "NameTaken"
    assert await stage.replicas() == 7


async def test_an_argument_that_contradicts_the_spec_is_a_condition_until_it_is_taken_out() -> None:
    stage = Stage()
    await stage.apply(engine={"args": ["--tensor-parallel-size=2"]})
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] == "ArgumentsContradictSpec"
    await stage.apply(engine={"args": []})
    await stage.turn()
    assert (await stage.condition("Ready"))["reason"] != "ArgumentsContradictSpec"
