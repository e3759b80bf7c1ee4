"""Orders from other commands to the process that holds a cluster together, as files."""

import json
import signal
import time
import uuid
from pathlib import Path
from typing import Protocol

from modelserve import errors
from servelab.cluster import home

DIRECTORY = "orders"
TIMEOUT_REAL_S = 90.0
POLL_REAL_S = 0.05


class Restarter(Protocol):
    """What an order can be given to: a LocalCluster."""

    home: home.Home

    def restart(self, name: str, number: signal.Signals) -> None:
        """End a process with signal ``number`` and start it again."""


def restart(directory: Path, name: str, *, kill: bool) -> None:
    """Order a restart and wait for it. SetUpError with the answer if it failed or none came."""
    place = directory / home.RUN / DIRECTORY
    place.mkdir(exist_ok=True, mode=0o700)
    order = place / f"{uuid.uuid4().hex}.order"
    answer = order.with_suffix(".answer")
    number = signal.SIGKILL if kill else signal.SIGTERM
    _write(order, {"restart": name, "signal": int(number)})
    deadline_real_s = time.monotonic() + TIMEOUT_REAL_S
    while not answer.exists():
        if time.monotonic() > deadline_real_s:
            order.unlink(missing_ok=True)
            raise errors.SetUpError(
                f"the local cluster in {directory} did not answer in {TIMEOUT_REAL_S:.0f} s: only "
                "one that `servelab up` started takes orders"
            )
        time.sleep(POLL_REAL_S)
    failure = json.loads(answer.read_text())["failure"]
    answer.unlink()
    if failure:
        raise errors.SetUpError(failure)


def answer(cluster: Restarter) -> None:
    """Carry out what was ordered since the last call."""
    for order in sorted((cluster.home.run / DIRECTORY).glob("*.order")):
        document = json.loads(order.read_text())
        order.unlink()
        failure = ""
        try:
            cluster.restart(document["restart"], signal.Signals(document["signal"]))
        except errors.ModelServeError as error:
            failure = str(error)
        _write(order.with_suffix(".answer"), {"failure": failure})


def _write(path: Path, document: dict[str, object]) -> None:
    temporary = path.with_suffix(".partial")
    temporary.write_text(json.dumps(document))
    temporary.replace(path)
