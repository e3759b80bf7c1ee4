"""What kubectl prints about a pod, line by line, without what differs from cluster to cluster."""

import re
from collections.abc import Iterator, Sequence

from servelab.node.checks import facts, recording

# Only what is about the pod itself: nodes differ in size, system and neighbours.
_ABOUT_POD = "{pod}"
_AGE = re.compile(r"(?<![\w.:-])(?:\d+d)?(?:\d+h)?(?:\d+m)?\d+s(?![\w.])|<invalid>")
_SPAN = re.compile(r"<age> \(x\d+ over <age>\)|\(<age> ago\)")
_DATE = re.compile(r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}")
_IMAGE = re.compile(r"(Image ID:\s*).*")
_DEBUGGER = re.compile(r"\bdebugger-[a-z0-9]{5}\b")
_SPACE = re.compile(r"\s+")
_HEADING = re.compile(r"[A-Z][\w ]*:")
_HOST_ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b(?!:5000)")


def compared(scenario: recording.Scenario) -> Sequence[recording.Print]:
    """The recorded commands that are asked again."""
    return [each for each in scenario.prints if _ABOUT_POD in each.command]


def lines(answer: recording.Answer, namespace: str, node: str) -> list[str]:
    """Exit code and lines, without what differs from cluster to cluster and second to second."""
    text = answer.stdout.rstrip() + "\n" + answer.stderr.strip()
    text = facts.mask(text, namespace, node)
    kept = (_masked(line, namespace) for line in _without_annotations(text.splitlines()))
    return [f"exit {answer.code}", *(line for line in kept if line)]


def _masked(line: str, namespace: str) -> str:
    line = _IMAGE.sub(r"\1<image>", _DATE.sub("<date>", line))
    line = _SPAN.sub("<age>", _AGE.sub("<age>", line))
    line = _DEBUGGER.sub("<debugger>", _HOST_ADDRESS.sub("<ip>", line))
    if line.startswith("Namespace:"):
        line = line.replace(namespace, "<namespace>")
    # A column is as wide as what stands in it.
    return _SPACE.sub(" ", line).rstrip()


def _without_annotations(text: Sequence[str]) -> Iterator[str]:
    """An emulated pod has annotations of its own, which go on in lines without a heading."""
    skipping = False
    for line in text:
        if line.startswith("Annotations:"):
            skipping = True
        elif skipping and _HEADING.match(line):
            skipping = False
        if not skipping:
            yield line
