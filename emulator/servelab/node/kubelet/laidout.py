"""The log lines that containers of a pod will write, as their behaviour lays them out."""

import heapq

from servelab.node.kubelet import runtime
from servelab.node.rules import actions


class Lines:
    """Of one pod, by the time they are due at; of the same time in the order they came in."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, runtime.Instance, str]] = []
        self._numbers = 0

    @property
    def due_s(self) -> float:
        """When the next one is due."""
        return self._heap[0][0] if self._heap else runtime.NEVER

    def lay_out(self, instance: runtime.Instance) -> None:
        """All that this run of a container will write."""
        for when, text in instance.behavior.lines():
            self._numbers += 1
            due = instance.started_s + when / instance.scale
            heapq.heappush(self._heap, (due, self._numbers, instance, text))

    def take(self) -> actions.Log | None:
        """The next one; None if its container has ended before."""
        due, _, instance, text = heapq.heappop(self._heap)
        return actions.Log(instance.name, due, text) if instance.ends_s >= due else None
