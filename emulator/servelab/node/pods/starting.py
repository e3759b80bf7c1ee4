"""The cold start of an engine container: phases with their stamps, log lines, progress in words."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from modelserve.api import names, quantities, wire
from modelserve.api.spec import EngineType
from servelab.engine.surfaces import startlines
from servelab.timing import transfers

# Progress is written after so many emulated seconds, but no more often than the API can bear.
PROGRESS_S = 5.0
PROGRESS_LEAST_REAL_S = 1.0
# An expected end is told again when it moved by more than this share of what was told, and seconds.
NEWS_SHARE = 0.05
NEWS_S = 1.0
TIMED = (wire.Phase.WEIGHT_LOAD, wire.Phase.WARM_UP)


@dataclass(frozen=True, slots=True)
class Line:
    """A log line due at this share (0 to 1) of its step. ``listens``: its port opens with it."""

    share: float
    text: str
    listens: bool = False

    def due_s(self, since_s: float, ends_s: float) -> float:
        """When it is due in a step that lasts from then until then."""
        return since_s + self.share * (ends_s - since_s) if self.share else since_s


@dataclass(frozen=True, slots=True)
class Step:
    """A timed step of the engine's start. ``work`` carries jitter, ``planned_s`` does not."""

    phase: wire.Phase
    work: transfers.Work
    planned_s: float
    lines: tuple[Line, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineStart:
    """How the engine in ``container`` starts: process start, weights, and what needs the weights.

    ``pull_planned_s`` is the planned image pull. All durations are emulated seconds.
    """

    container: str
    steps: tuple[Step, ...]
    pull_planned_s: float = 0.0
    engine: EngineType = EngineType.VLLM


class ColdStart:
    """Phases so far. Times are Unix seconds, real; the scale turns emulated durations into them."""

    def __init__(
        self, start: EngineStart, scale: float, stamps: Sequence[wire.PhaseStamp] = ()
    ) -> None:
        self.start = start
        self.progress_at_real_s = 0.0
        self._scale = scale
        self._stamps = list(stamps)
        self._begun = sum(stamp.phase in TIMED for stamp in stamps)  # of the timed steps
        self._due: list[Line] = []

    @property
    def progress_every_real_s(self) -> float:
        """Between two messages of progress."""
        return max(PROGRESS_LEAST_REAL_S, PROGRESS_S / self._scale)

    @property
    def phase(self) -> wire.Phase | None:
        """The phase that runs, STARTED when all are over, None before the first."""
        return self._stamps[-1].phase if self._stamps else None

    @property
    def since_real_s(self) -> float:
        """When the running phase began."""
        return self._stamps[-1].start_ms / 1000

    @property
    def launched_real_s(self) -> float | None:
        """When the first timed step began, with the container; None if that is still to come."""
        timed = (stamp for stamp in self._stamps if stamp.phase in TIMED)
        return next((stamp.start_ms / 1000 for stamp in timed), None)

    @property
    def step(self) -> Step | None:
        """The timed step that runs; None in other phases."""
        return self.start.steps[self._begun - 1] if self.phase in TIMED else None

    @property
    def next_step(self) -> Step | None:
        """The timed step after the running one; None after the last."""
        return self.start.steps[self._begun] if self._begun < len(self.start.steps) else None

    def enter(self, phase: wire.Phase, at_real_s: float) -> None:
        """End the running phase and begin this one; a timed one is the next step's."""
        at_ms = round(at_real_s * 1000)
        planned_s = self.start.pull_planned_s if phase is wire.Phase.IMAGE_PULL else 0.0
        if phase in TIMED and (step := self.next_step) is not None:
            planned_s = step.planned_s
        if self._stamps:
            self._stamps[-1] = replace(self._stamps[-1], end_ms=at_ms, expected_ms=0)
        ended_ms = at_ms if phase is wire.Phase.STARTED else 0
        self._stamps.append(wire.PhaseStamp(phase, at_ms, ended_ms, round(planned_s * 1000)))
        self._begun += phase in TIMED
        self.progress_at_real_s = at_real_s + self.progress_every_real_s
        self.schedule_lines()

    def schedule_lines(self) -> None:
        """Lay out the log lines of the running step."""
        step = self.step
        self._due = [] if step is None else list(step.lines)

    def past_lines(self) -> list[tuple[float, str]]:
        """The lines of the steps that are over, with their time."""
        begun = [stamp for stamp in self._stamps if stamp.phase in TIMED]
        over = [(stamp.start_ms / 1000, stamp.end_ms / 1000) for stamp in begun if stamp.end_ms]
        steps = zip(self.start.steps, over, strict=False)
        return [
            (line.due_s(*when), self._timed(line, *when).text)
            for step, when in steps
            for line in step.lines
        ]

    def next_line_real_s(self, ends_real_s: float) -> float:
        """When the next log line is due, if the step ends then; infinite if none is."""
        return self._due[0].due_s(self.since_real_s, ends_real_s) if self._due else float("inf")

    def take_lines(self, now_real_s: float, ends_real_s: float) -> Iterator[tuple[float, Line]]:
        """The lines due by now, each once, with their time, if the step ends then."""
        while (due := self.next_line_real_s(ends_real_s)) <= now_real_s:
            yield due, self._timed(self._due.pop(0), self.since_real_s, ends_real_s)

    def _timed(self, line: Line, since_real_s: float, ends_real_s: float) -> Line:
        text = startlines.timed(line.text, (ends_real_s - since_real_s) * self._scale)
        return line if text == line.text else replace(line, text=text)

    def expect(self, ends_real_s: float) -> bool:
        """The running phase should end then; returns whether that is worth telling."""
        length_s = (ends_real_s - self.since_real_s) * self._scale
        last = self._stamps[-1]
        told_s = (last.expected_ms or last.planned_ms) / 1000
        if not told_s or math.isinf(length_s):
            return False
        if abs(length_s - told_s) <= max(NEWS_S, NEWS_SHARE * told_s):
            return False
        self._stamps[-1] = replace(last, expected_ms=round(length_s * 1000))
        return True

    def hurry(self, now_real_s: float) -> None:
        """What is told of the running phase is out of date."""
        told_at = self.progress_at_real_s - self.progress_every_real_s
        soon = max(now_real_s, told_at + PROGRESS_LEAST_REAL_S)
        self.progress_at_real_s = min(self.progress_at_real_s, soon)

    def annotation(self) -> dict[str, str]:
        """``modelserve.dev/phases``."""
        stamps = wire.PhaseStamps(self._scale, tuple(self._stamps))
        return {names.PHASES: json.dumps(stamps.to_json(), separators=(",", ":"))}

    def condition(self, progress: transfers.Progress | None) -> tuple[str, str, str]:
        """Status, reason and message of the Starting condition."""
        phase = self.phase or wire.Phase.IMAGE_PULL
        if phase is wire.Phase.STARTED:
            return "False", str(phase), self._summary()
        return "True", str(phase), _message(phase, progress)

    def _summary(self) -> str:
        stamps = wire.PhaseStamps(self._scale, tuple(self._stamps))
        parts = (
            ("image pull", wire.Phase.IMAGE_PULL),
            ("weight load", wire.Phase.WEIGHT_LOAD),
            ("warm-up", wire.Phase.WARM_UP),
            ("probe wait", wire.Phase.PROBE),
        )
        took = [(word, stamps.emulated_s(phase)) for word, phase in parts]
        listed = ", ".join(f"{word} {seconds:.1f} s" for word, seconds in took)
        return f"started in {sum(seconds for _, seconds in took):.1f} s: {listed}"


def _message(phase: wire.Phase, progress: transfers.Progress | None) -> str:
    if phase is wire.Phase.PROBE:
        return "the engine serves; waiting for the next probe"
    if progress is None:
        return "waiting for the image" if phase is wire.Phase.IMAGE_PULL else "starting"
    left = "held up" if math.isinf(progress.left_s) else f"{progress.left_s:.0f} s left"
    if phase is wire.Phase.WARM_UP:
        return f"engine warm-up, {left}"
    size, rate = progress.size_bytes, progress.bytes_per_s
    if not size:
        return left
    whole, unit = quantities.format_bytes(size).split(" ")
    done = f"{progress.done_bytes / size * float(whole):.1f}"
    verb = "pulled" if phase is wire.Phase.IMAGE_PULL else "read"
    pace = f" at {quantities.format_bytes(rate)}/s" if rate else ""
    return f"{done} of {whole} {unit} {verb}{pace}, {left}"
