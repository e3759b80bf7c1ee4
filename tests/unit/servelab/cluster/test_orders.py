"""Orders that other commands leave for the process that holds a cluster."""

import json
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from modelserve import errors
from servelab.cluster import home, orders


class Cluster:
    """Writes down what it is told to restart, and may refuse."""

    def __init__(self, directory: Path, refusal: str = "") -> None:
        self.home = home.Home("test", directory, keep=False)
        self.restarted: list[tuple[str, signal.Signals]] = []
        self._refusal = refusal

    def restart(self, name: str, number: signal.Signals) -> None:
        if self._refusal:
            raise errors.SetUpError(self._refusal)
        self.restarted.append((name, number))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    one = Cluster(tmp_path / "a")
    one.home.open()
    yield one
    one.home.close()


def obey(cluster: Cluster, done: threading.Event) -> None:
    while not done.is_set():
        orders.answer(cluster)


def order(cluster: Cluster, *, kill: bool) -> None:
    """Give one order while the cluster listens."""
    done = threading.Event()
    listener = threading.Thread(target=obey, args=(cluster, done))
    listener.start()
    try:
        orders.restart(cluster.home.directory, "gateway", kill=kill)
    finally:
        done.set()
        listener.join()


def test_an_order_is_carried_out(cluster: Cluster) -> None:
    order(cluster, kill=False)
    assert cluster.restarted == [("gateway", signal.SIGTERM)]


def test_an_order_to_kill_says_so(cluster: Cluster) -> None:
    order(cluster, kill=True)
    assert cluster.restarted == [("gateway", signal.SIGKILL)]


def test_a_refusal_reaches_who_ordered(cluster: Cluster) -> None:
    cluster._refusal = "gateway ended with exit code 1"
    with pytest.raises(errors.SetUpError, match="exit code 1"):
        order(cluster, kill=False)


def test_no_order_and_no_answer_is_left(cluster: Cluster) -> None:
    order(cluster, kill=False)
    assert list((cluster.home.run / orders.DIRECTORY).iterdir()) == []


def test_a_cluster_without_orders_does_nothing(cluster: Cluster) -> None:
    orders.answer(cluster)
    assert json.dumps(cluster.restarted) == "[]"
