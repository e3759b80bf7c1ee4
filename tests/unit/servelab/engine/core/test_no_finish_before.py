"""The moment before which nothing ends is a lower bound, and a useful one."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.engine import assembly
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
GPU = "NVIDIA-H100-80GB-HBM3"
REQUESTS = st.lists(
    st.tuples(st.integers(1, 3000), st.integers(1, 300), st.floats(0, 3)), min_size=1, max_size=12
)


@given(requests=REQUESTS, seed=st.integers(0, 99), jitter=st.sampled_from([0.0, 0.02]))
@settings(max_examples=30, deadline=None)
def test_nothing_ends_before_it(
    requests: list[tuple[int, int, float]], seed: int, jitter: float
) -> None:
    container = {"name": "engine", "image": "vllm/vllm-openai", "args": [f"--model={MODEL}"]}
    spec = assembly.build(container, {}, GPU, seed=0, jitter=jitter)
    core = EngineCore(spec.config, spec.law, random.Random(seed))
    at_s = 0.0
    for number, (prompt, answer, gap_s) in enumerate(requests):
        core.settle(at_s)
        core.submit(CoreRequest(str(number), prompt, answer), at_s)
        at_s += gap_s
    while (bound_s := core.no_finish_before_s()) is not None:
        ended_s = [f.at_s for o in core.settle(bound_s) for f in o.finished]
        assert all(each >= bound_s - 1e-9 for each in ended_s)
        for output in core.settle(bound_s + 1e-3, until_finish=True):
            assert all(finish.at_s >= bound_s - 1e-9 for finish in output.finished)
