"""Bench ``core``: how many requests the engine core runs on virtual time, on one CPU core.

The engine is what ``vllm serve`` of an 8B model on an H100 gives by default, without jitter: KV
blocks, prefix cache, chunked prefill. Clients in a closed loop send their next request when they
have an answer. Of several runs the best counts, as the others say more about the machine.
"""

import gc
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from servelab.bench import figure, peers
from servelab.bench.registry import Say
from servelab.engine import assembly
from servelab.engine.core import stepping
from servelab.engine.core.sequences import CoreRequest
from servelab.engine.core.stepping import EngineCore
from servelab.workload import tracefile

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
GPU = "NVIDIA-H100-80GB-HBM3"
CLIENTS = 128
PROMPT_TOKENS, ANSWER_TOKENS = 512, 128
REQUESTS = 20_000
RUNS = 5
STEPPED_SHARE = 10  # of the requests one in so many also runs step by step
FOR_EVER_S = 1e12

GOAL_PER_S = 60_000
GOAL_AZURE_PER_S = 30_000

Lengths = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a closed loop came to, and how long that took."""

    requests: int
    tokens: int
    steps: int
    real_s: float


def run(samples: int | None, say: Say) -> Sequence[figure.Figure]:
    """Measure; ``samples`` is the number of requests."""
    count = samples or REQUESTS
    equal = [(PROMPT_TOKENS, ANSWER_TOKENS)] * count
    few = equal[: max(CLIENTS, count // STEPPED_SHARE)]
    say("the core runs " + ("as it is" if stepping.__file__.endswith(".py") else "compiled"))
    say(f"{count} equal requests, {CLIENTS} at a time")
    even = best(lambda: loop(engine(), equal))
    say("the lengths of the Azure conversations")
    azure = best(lambda: loop(engine(), conversations(count)))
    say(f"{len(few)} equal requests step by step")
    jumped = best(lambda: loop(engine(), few))
    stepped = best(lambda: loop(engine(jumps=False), few))
    rates: list[tuple[str, float, str, float | None, int]] = [
        ("requests_per_s", even.requests / even.real_s, "1/s", GOAL_PER_S, count),
        (
            *("azure_lengths_requests_per_s", azure.requests / azure.real_s, "1/s"),
            *(GOAL_AZURE_PER_S, count),
        ),
        ("tokens_per_s", even.tokens / even.real_s, "1/s", None, even.tokens),
        ("steps_per_s", even.steps / even.real_s, "1/s", None, even.steps),
        ("speedup_over_stepping", stepped.real_s / jumped.real_s, "×", None, len(few)),
    ]
    peer = peers.aisimulate_requests_per_s(count, PROMPT_TOKENS, ANSWER_TOKENS, CLIENTS)
    if peer is not None:
        rates.append(("aisimulate.requests_per_s", peer, "1/s", None, count))
    return [
        figure.Figure(name, value, unit, "higher", goal, number)
        for name, value, unit, goal, number in rates
    ]


def engine(*, jumps: bool = True) -> EngineCore:
    """A fresh one."""
    container = {"name": "engine", "image": "vllm/vllm-openai", "args": [f"--model={MODEL}"]}
    spec = assembly.build(container, {}, GPU, seed=0, jitter=0.0)
    return EngineCore(spec.config, spec.law, random.Random(spec.seed), jumps=jumps)


def conversations(count: int) -> list[Lengths]:
    """So many requests of the trace that comes with the package, from its start over and over."""
    lengths = [(each.input_tokens, each.output_tokens) for each in tracefile.shipped()]
    return (lengths * (count // len(lengths) + 1))[:count]


def loop(core: EngineCore, lengths: Iterable[Lengths], clients: int = CLIENTS) -> Ran:
    """Run a closed loop to its end."""
    started_real_s = time.perf_counter()
    to_come = (CoreRequest(str(at), *length) for at, length in enumerate(lengths))
    for _, request in zip(range(clients), to_come, strict=False):
        core.submit(request, 0.0)
    requests = tokens = steps = 0
    while not core.idle:
        for output in core.settle(FOR_EVER_S, until_finish=True):
            steps += len(output.times_s)
            for finish in output.finished:
                requests += 1
                tokens += finish.output_tokens
                following = next(to_come, None)
                if following is not None:
                    core.submit(following, finish.at_s)
    return Ran(requests, tokens, steps, time.perf_counter() - started_real_s)


def best(measure: Callable[[], Ran]) -> Ran:
    """The quickest of several runs, without the garbage collector, as ``timeit`` does it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return min((measure() for _ in range(RUNS)), key=lambda ran: ran.real_s)
    finally:
        if collects:
            gc.enable()
