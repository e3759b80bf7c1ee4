"""Pods that start at once share the links of their nodes, of the registry and of the storage."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from modelserve.api import names, wire
from modelserve.catalog import gpus
from modelserve.decide import nodefacts
from servelab.node.machines import images, links
from servelab.node.pods import planning, podspec
from servelab.timing import routes, transfers

T0 = 1_800_000_000.0
BACKEND_BYTES_PER_S = 2e9
RATES = nodefacts.node_rates({names.STORAGE_SHARED_BANDWIDTH: "2GB/s"})
FACTS = planning.NodeFacts(gpus.find("h100-sxm"), RATES, "dgx")
SERVE = ["--model", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"]
IMAGE = "vllm/vllm-openai:v0.33.0"


@dataclass
class Fleet:
    """Engine pods, each on a node of its own unless told otherwise, on one clock."""

    make_pod: Any
    player: Any
    facts: planning.NodeFacts = FACTS
    pods: list[Any] = field(default_factory=list)
    now_s: float = 0.0

    def __post_init__(self) -> None:
        self.links = links.Links(self._moved)

    def add(self, *, pulled: bool = True) -> Any:
        """A pod begins; ``pulled``: its image is there."""
        number = len(self.pods)
        pod = self.make_pod(image=IMAGE, args=SERVE)
        pod["metadata"]["uid"] = f"uid-{number}"
        pod["spec"]["nodeName"] = f"n-{number}"
        moves = self.links.of(f"n-{number}")
        plan = planning.of_pod(podspec.parse(pod), self.facts, images.NodeImages(moves, "x"))
        moves.learn(plan.links)
        made = self.player(
            pod, plan.engines["engine"].start, moves=moves, plan=plan, now=T0 + self.now_s
        )
        if pulled:
            made.host.images.add(IMAGE, 1)
        self.pods.append(made)
        return made

    def run(self, until_s: float) -> None:
        """Let the time pass for all of them, from one event to the next."""
        while self.now_s < until_s:
            dues = [pod.step() for pod in self.pods]
            self.now_s = min([until_s, *(max(self.now_s, due - T0) for due in dues)])
            for pod in self.pods:
                pod.run(self.now_s)

    def restart(self) -> None:
        """The emulator's process ends and starts again."""
        self.links = links.Links(self._moved)
        for pod in self.pods:
            pod.moves = self.links.of(pod.pod["spec"]["nodeName"])
            pod.moves.learn(pod.plan.links)
            pod.restart()

    def load_ends_s(self) -> list[float]:
        stamps = [pod.stamps().stamps for pod in self.pods]
        ends = [s.end_ms for each in stamps for s in each if s.phase is wire.Phase.WEIGHT_LOAD]
        return [end / 1000 - T0 for end in ends]

    def _moved(self, key: str) -> None:
        for pod in self.pods:
            if pod.pod["metadata"]["uid"] == key.split("/")[2]:
                pod.life.moved(pod.now)


@pytest.fixture
def fleet(make_pod: Any, player: Any) -> Fleet:
    return Fleet(make_pod, player)


def processor_sharing_s(sizes_bytes: list[float], bytes_per_s: float) -> list[float]:
    """Ends of equal shares of a link: the smallest first, and what it leaves is for the others."""
    ends, end_s, left = [], 0.0, len(sizes_bytes)
    for before, size in itertools.pairwise([0.0, *sorted(sizes_bytes)]):
        end_s += (size - before) * left / bytes_per_s
        ends.append(end_s)
        left -= 1
    return ends


def test_ten_replicas_that_start_at_once_take_what_arithmetic_says(fleet: Fleet) -> None:
    pods = [fleet.add() for _ in range(10)]
    fleet.run(400)
    works = [pod.engine.steps[0].work for pod in pods]
    wanted = processor_sharing_s([work.stages[0].size_bytes for work in works], BACKEND_BYTES_PER_S)
    began = pods[0].stamps().stamps[1].start_ms / 1000 - T0
    assert sorted(fleet.load_ends_s()) == pytest.approx([began + s for s in wanted], rel=0.01)
    assert works[0].duration_s < min(wanted) / 4


def test_what_is_left_grows_when_another_starts(fleet: Fleet) -> None:
    one = fleet.add()
    fleet.run(5.5)
    before_s = _left_s(one)
    for _ in range(5):
        fleet.add()
    fleet.run(7)
    assert _left_s(one) > 2 * before_s


def test_what_the_operator_reads_moves_with_it(fleet: Fleet) -> None:
    one = fleet.add()
    fleet.run(4)
    assert _stamp(one).expected_ms == 0
    for _ in range(5):
        fleet.add()
    fleet.run(7)
    assert _stamp(one).expected_ms > 1.5 * _stamp(one).planned_ms


def test_log_lines_keep_their_share_of_a_load_that_slows_down(fleet: Fleet) -> None:
    one = fleet.add()
    fleet.run(4)
    for _ in range(5):
        fleet.add()
    fleet.run(300)
    load = one.stamps().stamps[1]
    ends = load.end_ms / 1000 - T0
    last = max(line.share for line in one.engine.steps[0].lines)
    told = [at for at, _ in one.logs if at <= ends + 0.01]
    wanted = load.start_ms / 1000 - T0 + last * (load.end_ms - load.start_ms) / 1000
    assert max(told) == pytest.approx(wanted, abs=0.1)


def test_a_replica_that_goes_leaves_its_share(fleet: Fleet) -> None:
    one, two = fleet.add(), fleet.add()
    fleet.run(2)
    slow_s = one.moves.ends_at_s(one.life.state.engines["engine"].moves.key)
    two.life.off(two.now)
    assert one.moves.ends_at_s(one.life.state.engines["engine"].moves.key) < slow_s - 1


def test_a_pull_tells_its_progress(fleet: Fleet) -> None:
    one = fleet.add(pulled=False)
    fleet.run(31)
    message = one.condition("modelserve.dev/Starting")["message"]
    assert " GB pulled at " in message
    assert not message.startswith("0.0 ")


def test_shared_loads_end_when_they_would_have_had_we_not_restarted(
    make_pod: Any, player: Any
) -> None:
    whole, broken = Fleet(make_pod, player), Fleet(make_pod, player)
    for fleet in (whole, broken):
        for _ in range(4):
            fleet.add()
        fleet.run(10)
    broken.restart()
    for fleet in (whole, broken):
        fleet.run(100)
    assert broken.load_ends_s() == pytest.approx(whole.load_ends_s(), abs=0.01)


def test_an_engine_that_crashed_and_pulls_again_waits_for_the_pull_only(
    make_pod: Any, player: Any
) -> None:
    fleet = Fleet(make_pod, player)
    one = fleet.add()
    one.pod["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    one.begin()
    fleet.run(5)
    one.life.exited("engine", 1, one.now)
    assert one.step() > one.now


def test_pulls_of_a_pool_share_its_registry(make_pod: Any, player: Any) -> None:
    facts = planning.NodeFacts(FACTS.gpu, RATES, "dgx", 250e6)
    fleet = Fleet(make_pod, player, facts)
    pods = [fleet.add(pulled=False) for _ in range(4)]
    fleet.run(1)
    size = pods[0].plan.works["engine"].size_bytes
    key = pods[0].life.pulls()[0]
    took_s = pods[0].host.images.state(key).ends_s - T0
    assert took_s > 0.95 * 4 * size / 250e6


def test_the_links_of_a_node_go_with_it(fleet: Fleet) -> None:
    one = fleet.add()
    fleet.run(2)
    one.moves.close(T0 + 2)
    assert fleet.links.shared.next_end_s() == float("inf")


def test_a_node_that_comes_again_has_its_links_again() -> None:
    all_links = links.Links()
    route = routes.Route(transfers.Work(1.0, 1e9, (transfers.Stage(1e9, ("node/n/net",)),)), {})
    old, new = all_links.of("n"), all_links.of("n")
    for view in (old, new):
        view.learn({"node/n/net": 1e9})
        view.start(f"n/load/{id(view)}", route.work, 0.0)
    old.close(0.5)
    new.start("n/load/c", route.work, 1.0)
    assert new.ends_at_s("n/load/c") == pytest.approx(2.25)


def _left_s(pod: Any) -> float:
    message = pod.condition("modelserve.dev/Starting")["message"]
    return float(message.split(", ")[1].split(" ")[0])


def _stamp(pod: Any) -> wire.PhaseStamp:
    text = pod.pod["metadata"]["annotations"][names.PHASES]
    return wire.PhaseStamps.parse(json.loads(text)).stamps[-1]


def test_a_part_that_is_slowed_moves_what_passes_it_and_is_quick_again() -> None:
    heard: list[str] = []
    node = links.Links(heard.append).of("n")
    node.learn({"node/n/registry": 10.0, "node/n/read/p/nvme": 10.0})
    pull = transfers.Work(10.0, 100.0, (transfers.Stage(100.0, ("node/n/registry",)),))
    node.start("n/pull/u/c", pull, 0.0)
    node.slow("fault", "registry", 10.0, 5.0)
    assert node.ends_at_s("n/pull/u/c") == pytest.approx(5 + 50)
    node.slow("fault", "registry", 1.0, 10.0)
    assert node.ends_at_s("n/pull/u/c") == pytest.approx(10 + 4.5)
    assert heard[-1] == "n/pull/u/c"


def test_what_starts_later_is_slow_too_and_the_slowest_counts() -> None:
    node = links.Links().of("n")
    node.learn({"node/n/read/p/nvme": 10.0})
    for owner, factor in (("a", 2.0), ("b", 5.0)):
        node.slow(owner, "read", factor, 0.0)
    read = transfers.Work(10.0, 100.0, (transfers.Stage(100.0, ("node/n/read/p/nvme",)),))
    node.start("n/load/u", read, 0.0)
    assert node.ends_at_s("n/load/u") == pytest.approx(50)


def test_what_was_slow_on_nodes_that_are_gone_is_forgotten() -> None:
    every = links.Links()
    for number in range(10):
        node = every.of(f"n-{number}")
        node.slow("pod", "registry", 5.0, 0.0)
        node.close(1.0)
    assert every.slowed == 0
