"""Carries out what the life of a pod asks for: writes, events, lines, orders to its engines."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from modelserve import ports
from servelab.engine import stamps
from servelab.node.kubelet import life as lives
from servelab.node.machines import machine
from servelab.node.pods import enginecontrol, journal, writer
from servelab.node.rules import actions, profiles
from servelab.node.services import Services

STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


class Carrier:
    """For one pod. ``brief``: what can wait is not written, and not all events are told."""

    def __init__(
        self,
        life: lives.PodLife,
        node: machine.Machine,
        services: Services,
        written: writer.PodWriter,
        engine_control: enginecontrol.EngineControl,
        journals: MutableMapping[str, journal.Journal],
        *,
        brief: bool,
    ) -> None:
        self._life = life
        self._node = node
        self._services = services
        self._writer = written
        self._engine_control = engine_control
        self._journals = journals
        self._brief = brief

    def do(self, action: actions.Action) -> None:
        """Carry it out, or see to it that it is."""
        match action:
            case actions.WriteStatus(status):
                self._end_logs(status)
                if not (self._brief and profiles.can_wait(status)):
                    self._writer.status(status)
            case actions.Annotate(annotations):
                self._writer.annotate(annotations)
            case actions.Emit():
                self._emit(action)
            case actions.Log(container, at, line):
                self._journals[container].append(at, stamps.stamped(line, at))
            case actions.NewLog(container):
                self._journals[container].rotate()
            case actions.Command():
                self._engine_control.put(action)
            case actions.Slow(path, factor):
                uid = self._life.pod.uid
                self._node.slow(uid, path, factor, self._services.unix_s())
            case actions.Delete():
                self._writer.delete()
            case actions.ImagesChanged():
                self._node.images_changed()

    def _end_logs(self, status: Mapping[str, Any]) -> None:
        """Whoever follows a container that has ended has seen all, whether it runs again or not."""
        entries = (each for key in STATUSES for each in status.get(key) or ())
        for entry in entries:
            found, state = self._journals.get(entry["name"]), entry["state"]
            ended = state.get("terminated") or (entry.get("lastState") or {}).get("terminated")
            if found is not None and not found.closed and ended and "running" not in state:
                found.end()

    def warn(self, reason: str, message: str) -> None:
        """Tell of something that is wrong with the pod, whatever was told before."""
        self._node.sink.emit(self._subject(), "Warning", reason, message)

    def _emit(self, event: actions.Emit) -> None:
        if self._brief and not profiles.is_told(event.kind):
            return
        if self._node.ration.lets(self._life.pod.uid, event.kind, self._services.unix_s()):
            kind, where = event.kind, event.field_path
            self._node.sink.emit(
                self._subject(), kind, event.reason, event.message, field_path=where
            )

    def _subject(self) -> ports.Object:
        raw = self._life.pod.raw
        return {"apiVersion": "v1", "kind": "Pod", "metadata": raw["metadata"]}
