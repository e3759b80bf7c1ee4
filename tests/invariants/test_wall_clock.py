"""Invariant 12: the wall clock may be an hour off, and may jump: the count goes the same way."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelserve.api import timestamps
from modelserve.testing.stage import Stage

HOUR_S = 3600.0
STEPS = 14
FEW = settings(max_examples=12, deadline=None)


async def story(offset_s: float, jump_s: float, at_step: int) -> list[tuple[int, list[str]]]:
    """A wake, a slow start, traffic, a step down, silence: count and pods to delete by step.

    The API server's clock is ``offset_s`` behind ours; ours jumps once.
    """
    stage, course = Stage(), []
    clock, stage.server_behind_s = stage.clock, offset_s
    await stage.add_node()
    await stage.apply(engine={"batching": {"maxSequences": 4}})
    pods = 0
    for step in range(STEPS):
        if step == at_step:
            clock.set_wall(clock.wall_s() + jump_s)
        held, told = 40 if 1 <= step < 5 else 0, 40 * min(step, 5)
        stage.gateways.say("llama", held=held, arrivals=told)
        await stage.turn(times=2)
        while pods < await stage.replicas():
            pods += 1
            await stage.start_pod(f"llama-{pods}")
            await tell(stage, f"llama-{pods}", "PodScheduled")
        if step == 5:
            for number in range(pods):
                await tell(stage, f"llama-{number + 1}", "PodScheduled", "Ready")
        await stage.turn(times=2)
        deleted = [call.name for call in stage.cluster.calls if call.verb == "delete"]
        course.append((await stage.replicas(), deleted))
        await clock.advance(60.0)
    return course


async def tell(stage: Stage, pod: str, *kinds: str) -> None:
    """Conditions of a pod, stamped by the API server's clock."""
    at = timestamps.format_time(stage.clock.wall_s() - stage.server_behind_s)
    found = [{"type": kind, "status": "True", "lastTransitionTime": at} for kind in kinds]
    await stage.set_pod_status(pod, {"phase": "Running", "conditions": found})


@pytest.fixture(scope="session")
def undisturbed() -> list[tuple[int, list[str]]]:
    return asyncio.run(story(0.0, 0.0, 0))


def test_the_story_has_something_to_disturb(undisturbed: list[tuple[int, list[str]]]) -> None:
    counts = [count for count, _ in undisturbed]
    assert counts[0] == counts[-1] == 0
    assert max(counts) > 1


@given(
    offset_s=st.sampled_from([0.0, -HOUR_S, HOUR_S]),
    jump_s=st.sampled_from([-HOUR_S, -5.0, 5.0, HOUR_S]),
    at_step=st.integers(0, STEPS - 1),
)
@FEW
def test_a_wall_clock_that_is_off_and_jumps_changes_nothing(
    undisturbed: list[tuple[int, list[str]]], offset_s: float, jump_s: float, at_step: int
) -> None:
    assert asyncio.run(story(offset_s, jump_s, at_step)) == undisturbed
