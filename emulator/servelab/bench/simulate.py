"""Bench ``simulate``: how long the simulator takes, on one CPU core.

An hour of the Azure code trace with gateway, autoscaler and cold starts, as `servelab simulate
azure-code-hour` runs it; the best of several runs counts. And one decision for one busy model, the
best of many batches so short that most are not disturbed.
With ``full`` a fleet's whole day too, once, in a process of its own: minutes. Its seconds are those
of the CPU, since it runs on one core and long enough to be disturbed.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from modelserve import errors
from modelserve.decide import observation, scaling, state
from servelab.bench import figure, fleetday
from servelab.bench.registry import Say
from servelab.sim import reading, running, scenario

SCENARIO = "azure-code-hour"
RUNS = 5
BATCHES, DECISIONS = 100, 500
GOAL_S = 1.5
GOAL_DECISION_S = 30e-6
GOAL_DAY_S = 600.0
GOAL_DAY_RSS_BYTES = 2e9


def run(samples: int | None, say: Say, full: bool = False) -> Sequence[figure.Figure]:
    """Measure; ``samples`` is the number of runs; ``full``: the fleet's day too."""
    runs = samples or RUNS
    given = reading.parse(reading.packaged_text(SCENARIO), SCENARIO)
    say(f"{SCENARIO}, {runs} times")
    hour_s, requests = best(runs, lambda: requests_of(given))
    say(f"{BATCHES * DECISIONS} decisions")
    decision_s = min(decisions_s() for _ in range(BATCHES)) / DECISIONS
    found = [
        figure.Figure("azure_code_hour_s", hour_s, "s", "lower", GOAL_S, runs),
        figure.Figure("requests_per_s", requests / hour_s, "1/s", "higher", None, requests),
        figure.Figure("decision_s", decision_s, "s", "lower", GOAL_DECISION_S, BATCHES),
    ]
    return [*found, *_day(say)] if full else found


def _day(say: Say) -> Sequence[figure.Figure]:
    """The fleet's day. Raises ModelServeError if its process fails."""
    say(f"{fleetday.of().description}, {fleetday.REQUESTS:,} requests, once: some ten minutes")
    command = (sys.executable, "-P", "-m", "servelab.bench.fleetday")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise errors.ModelServeError(f"the fleet's day was not finished: {done.stderr[-500:]}")
    took = json.loads(done.stdout)
    return [
        figure.Figure("fleet_day_s", took["cpu_s"], "s", "lower", GOAL_DAY_S, took["requests"]),
        figure.Figure(
            "fleet_day_rss_bytes", took["rss_bytes"], "bytes", "lower", GOAL_DAY_RSS_BYTES, 1
        ),
    ]


def requests_of(given: scenario.Scenario) -> int:
    """Run it; how many requests there were."""
    return running.run(given, "committed").models[0].records.arrived


def best(runs: int, act: Callable[[], int]) -> tuple[float, int]:
    """Seconds of the quickest run, and what it came to."""
    least_s, found = float("inf"), 0
    for _ in range(runs):
        gc.collect()
        began_real_s = time.perf_counter()
        found = act()
        least_s = min(least_s, time.perf_counter() - began_real_s)
    return least_s, found


def decisions_s() -> float:
    """Seconds of many decisions in a row for one busy model with four replicas."""
    parameters = observation.Parameters(slots=16, cold_start_s=90, service_s=2)
    replicas = tuple(
        observation.Replica(
            f"pod-{number}",
            f"pod-{number}",
            observation.ReplicaState.READY,
            0.0,
            ready_since_s=50.0,
            in_flight=10,
            waiting=0.0,
            running=10.0,
        )
        for number in range(4)
    )
    signal = observation.GatewaySignal(1, 0, 0.0, 0, 5, 5, 10.0)
    seen = observation.Observation(replicas, signal, 4, 4)
    memory = state.ScalerState()
    began_real_s = time.perf_counter()
    for number in range(DECISIONS):
        _, memory = scaling.decide(seen, parameters, memory, 100.0 + number)
    return time.perf_counter() - began_real_s
