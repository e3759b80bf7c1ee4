"""Invariant 6 on a real API server: an engine whose metrics go bad keeps its model up."""

import http.server
import itertools
import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.cluster

# A class in conftest.py, which no test can import by name.
Model = Any
DIAL = "emulator.modelserve.dev/dial"
FIGURES = re.compile(r"^(vllm:num_requests_(?:running|waiting)\{[^}]*\}) .*$", re.MULTILINE)
ODD = ("NaN", "+Inf", "-Inf", "-1", "1e300", "many")


class Metrics(http.server.ThreadingHTTPServer):
    """Answers like an engine: its own last figures, or one kind of rubbish after another."""

    daemon_threads = True

    def __init__(self, honest: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.rubbish = True
        self.asked = 0
        self.honest = honest
        odd = [(200, FIGURES.sub(rf"\1 {value}", honest)) for value in ODD]
        self.answers = [*odd, (200, ""), (500, "<h1>it broke</h1>"), (200, "<h1>log in</h1>")]
        self._turns = itertools.cycle(self.answers)

    def answer(self, path: str) -> tuple[int, str]:
        """Status and body of a GET."""
        if not path.startswith("/metrics"):
            return 200, ""
        self.asked += 1
        return next(self._turns) if self.rubbish else (200, self.honest)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Metrics

    def do_GET(self) -> None:
        status, body = self.server.answer(self.path)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def start_metrics() -> Iterator[Callable[[str], Metrics]]:
    """Serves them until the test ends."""
    started: list[Metrics] = []

    def start(honest: str) -> Metrics:
        started.append(Metrics(honest))
        threading.Thread(target=started[-1].serve_forever, daemon=True).start()
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def test_an_engine_whose_figures_make_no_sense_keeps_its_model_up(
    model: Model, start_metrics: Callable[[str], Metrics], until: Callable[..., Any]
) -> None:
    """The operator is led past the engine, to these answers; then the model may sleep at once."""
    quick = {"imageSize": "1MB", "warmUpSeconds": 1}
    model.apply(coldStart=quick, scaling={"minReplicas": 1})
    model.wait_for(".status.readyReplicas", 1)
    pod = model.pods()[0]["metadata"]
    with urllib.request.urlopen(f"http://{pod['annotations'][DIAL]}/metrics", timeout=10) as told:
        metrics = start_metrics(told.read().decode())
    address = f"{DIAL}=127.0.0.1:{metrics.server_port}"
    model.run("annotate", "pod", pod["name"], address, "--overwrite")
    model.wait("condition=MetricsAvailable=false")
    window = {"stabilizationWindowSeconds": 0}
    model.apply(coldStart=quick, scaling={"cooldownSeconds": 10, "scaleDown": window})
    model.wait_for(".status.observedGeneration", 2)
    whole_round = metrics.asked + len(metrics.answers)
    until("all the rubbish", lambda: metrics.asked, lambda n: n > whole_round)
    assert (model.count(), model.condition("MetricsAvailable")["status"]) == (1, "False")
    metrics.rubbish = False
    model.wait("condition=MetricsAvailable")
    model.wait_for(".spec.replicas", 0, "deployment")
    assert model.count() == 0
