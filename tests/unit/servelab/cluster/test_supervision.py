"""What ended by itself is brought back, with growing pauses."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from modelserve import errors
from servelab.cluster import processes, supervision


class Cluster:
    """Processes that die when told to; ``refusal`` is why none can be started."""

    def __init__(self, *names: str) -> None:
        self.wanted: Sequence[str] = names
        self.running: Sequence[str] = names
        self.revived: list[str] = []
        self.refusal = ""
        self._dead: list[processes.Death] = []

    def die(self, name: str) -> None:
        self.running = [other for other in self.running if other != name]
        self._dead.append(processes.Death(name, 1, Path("x.log"), "  why"))

    def deaths(self) -> Sequence[processes.Death]:
        found, self._dead = self._dead, []
        return found

    def revive(self, name: str) -> None:
        if self.refusal:
            raise errors.SetUpError(self.refusal)
        self.revived.append(name)
        self.running = [*self.running, name]


class Scene:
    """A supervisor that looks every tenth of a second of its own clock."""

    def __init__(self, *names: str) -> None:
        self.cluster = Cluster(*names)
        self.said: list[str] = []
        self.now_real_s = 0.0
        self.supervisor = supervision.Supervisor(self.cluster, self.said.append)
        self.supervisor.look(0.0)

    def until(self, end_real_s: float) -> None:
        while self.now_real_s < end_real_s:
            self.now_real_s += 0.1
            self.supervisor.look(self.now_real_s)

    def pause_after_death(self, name: str) -> float:
        """Real seconds from a death to the start after it."""
        self.cluster.die(name)
        died_real_s, known = self.now_real_s, len(self.cluster.revived)
        while len(self.cluster.revived) == known:
            self.until(self.now_real_s + 0.1)
        return self.now_real_s - died_real_s


def test_a_process_that_ended_is_started_again_and_both_are_told() -> None:
    scene = Scene("operator", "gateway")
    scene.pause_after_death("operator")
    assert scene.cluster.revived == ["operator"]
    assert "operator ended with exit code 1" in scene.said[0]
    assert "operator is started again in 1 s" in scene.said[0]


def test_one_that_ends_again_and_again_waits_twice_as_long_each_time_up_to_a_minute() -> None:
    scene = Scene("operator")
    pauses = [round(scene.pause_after_death("operator")) for _ in range(8)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]


def test_after_a_healthy_run_the_first_pause_is_short_again() -> None:
    scene = Scene("operator")
    for _ in range(5):
        scene.pause_after_death("operator")
    scene.until(scene.now_real_s + 2 * supervision.PAUSE_MOST_REAL_S)
    assert round(scene.pause_after_death("operator")) == 1


def test_each_process_has_pauses_of_its_own() -> None:
    scene = Scene("operator", "gateway")
    for _ in range(4):
        scene.pause_after_death("operator")
    assert round(scene.pause_after_death("gateway")) == 1


@pytest.mark.parametrize("name", ["kube-apiserver", "kube-scheduler", "kube-controller-manager"])
def test_the_control_plane_is_brought_back_too_as_long_as_etcd_runs(name: str) -> None:
    scene = Scene("etcd", name)
    scene.pause_after_death(name)
    assert scene.cluster.revived == [name]


def test_the_end_of_etcd_is_the_end_of_the_cluster() -> None:
    scene = Scene("etcd", "operator")
    scene.cluster.die("etcd")
    with pytest.raises(errors.SetUpError, match="etcd ended"):
        scene.until(1)


def test_one_that_cannot_be_started_is_tried_again() -> None:
    scene = Scene("gateway")
    scene.cluster.refusal = "no memory"
    scene.cluster.die("gateway")
    scene.until(10)
    scene.cluster.refusal = ""
    scene.until(20)
    assert scene.cluster.revived == ["gateway"]
    assert "no memory" in scene.said[1]


def test_one_that_an_order_started_meanwhile_is_not_started_twice() -> None:
    scene = Scene("gateway")
    scene.cluster.die("gateway")
    scene.until(0.5)
    scene.cluster.running = ["gateway"]
    scene.until(5)
    assert scene.cluster.revived == []


def test_one_that_an_order_could_not_start_is_brought_back() -> None:
    scene = Scene("gateway")
    scene.cluster.running = []
    scene.until(5)
    assert scene.cluster.revived == ["gateway"]


def test_one_that_was_stopped_stays_away() -> None:
    scene = Scene("gateway")
    scene.cluster.wanted = scene.cluster.running = []
    scene.until(5)
    assert scene.cluster.revived == []
