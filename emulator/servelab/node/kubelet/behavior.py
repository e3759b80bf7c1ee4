"""How a container without an engine behaves: annotation ``emulator.modelserve.dev/behavior``.

Durations are emulated seconds since the container's start.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pydantic
from pydantic.alias_generators import to_camel

from modelserve import errors
from modelserve.api import names
from modelserve.engines import installed
from servelab.node.kubelet import greeting, imagenames, scripts
from servelab.node.pods import podspec

NEVER = float("inf")
UNAVAILABLE = 503
_IMAGE_WORDS = {"present", "missing", "error", "root", "sizeBytes", "pullSeconds"}
# An interpreter or a shell that finds nothing to run is done after so many seconds.
ABSENT_S = 0.05
# A program without a handler for SIGTERM ignores it as the first process of its PID namespace: the
# kernel lets no signal end that one but by a handler. These have none.
UNHANDLED = ("sh", "ash", "bash", "sleep", "httpd", "tail", "cat", "nc", "yes", "true", "pause")


class Behavior(pydantic.BaseModel):
    """The words for one container; what is left out is a server that listens for ever."""

    model_config = pydantic.ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, populate_by_name=True
    )

    listen: bool = True
    listen_after_seconds: float = pydantic.Field(0.0, ge=0)
    healthy_from_seconds: float = pydantic.Field(0.0, ge=0)
    healthy_until_seconds: float | None = pydantic.Field(None, ge=0)
    unhealthy_seconds: tuple[tuple[float, float], ...] = ()
    probe_prints: str = ""
    probe_error: str = ""
    status_while_unhealthy: int = pydantic.Field(UNAVAILABLE, ge=100, le=599)
    exit_after_seconds: float | None = pydantic.Field(None, ge=0)
    exit_code: int = pydantic.Field(0, ge=0, le=255)
    term_after_seconds: float | None = pydantic.Field(None, ge=0)
    term_exit_code: int = pydantic.Field(0, ge=0, le=255)
    ignores_term: bool = False
    pre_stop_seconds: float = pydantic.Field(0.0, ge=0)
    post_start_fails: bool = False
    oom_after_seconds: float | None = pydantic.Field(None, ge=0)
    start_error: str = ""
    config_error: str = ""
    mount_errors: Mapping[str, str] = pydantic.Field(default_factory=dict)  # by volume
    termination_message: str = ""
    log: tuple[str, ...] = ()
    later: "Behavior | None" = None  # of all runs after the first

    @pydantic.field_validator("log")
    @classmethod
    def _timed(cls, lines: tuple[str, ...]) -> tuple[str, ...]:
        for line in lines:
            try:
                float(line.partition(" ")[0])
            except ValueError:
                raise ValueError(f"{line!r} must begin with the second it is written at") from None
        return lines

    def of_run(self, number: int) -> "Behavior":
        """How it behaves in that run, counted from 0."""
        said = self
        while number and said.later is not None:
            said, number = said.later, number - 1
        return said

    def lines(self) -> Sequence[tuple[float, str]]:
        """The log: second and text."""
        parts = (line.partition(" ") for line in self.log)
        return sorted(((float(at), text) for at, _, text in parts), key=lambda line: line[0])

    def listens(self, age_s: float) -> bool:
        """Whether the server answers at that age."""
        return self.listen and age_s >= self.listen_after_seconds

    def steady(self, age_s: float) -> bool:
        """Whether, from that age on, it answers that all is well until it ends."""
        last = max([0.0, *(end for _, end in self.unhealthy_seconds)])
        begun = age_s >= max(self.listen_after_seconds, self.healthy_from_seconds, last)
        return self.listen and begun and self.healthy_until_seconds is None

    def healthy(self, age_s: float) -> bool:
        """Whether a server that answers says that all is well."""
        until = NEVER if self.healthy_until_seconds is None else self.healthy_until_seconds
        ill = any(begin <= age_s < end for begin, end in self.unhealthy_seconds)
        return self.healthy_from_seconds <= age_s < until and not ill


PLAIN = Behavior()


@dataclass(frozen=True, slots=True)
class ImageFact:
    """What the node, or the registry, holds of an image; None where it does not matter."""

    present: bool = False
    error: str = ""
    root: bool = False  # it runs as root, where it is known
    size_bytes: int | None = None
    pull_s: float | None = None


def parse(pod: podspec.Pod) -> Mapping[str, Behavior]:
    """Behaviour by container name. Raises InputError, naming pod, container and word."""
    found = _document(pod, names.BEHAVIOR)
    unknown = sorted(set(found) - {spec.name for spec in pod.containers})
    if unknown:
        raise errors.InputError(f"{_where(pod, names.BEHAVIOR)} names no container: {unknown[0]!r}")
    return {spec.name: _one(pod, spec, found.get(spec.name)) for spec in pod.containers}


def parse_images(pod: podspec.Pod) -> Mapping[str, ImageFact]:
    """Facts by image, as annotation ``emulator.modelserve.dev/images`` says. Raises InputError."""
    facts = {}
    for image, words in _document(pod, names.IMAGES).items():
        where = f"{_where(pod, names.IMAGES)}: image {image!r}"
        if not isinstance(words, dict):
            raise errors.InputError(f"{where} must be an object")
        unknown = sorted(set(words) - _IMAGE_WORDS)
        if unknown:
            raise errors.InputError(f"{where} has the unknown word {unknown[0]!r}")
        missing = str(words.get("error") or (not_found(image) if words.get("missing") else ""))
        size, pull = words.get("sizeBytes"), words.get("pullSeconds")
        try:
            facts[image] = ImageFact(
                bool(words.get("present")),
                missing,
                bool(words.get("root")),
                None if size is None else int(size),
                None if pull is None else float(pull),
            )
        except (TypeError, ValueError):
            raise errors.InputError(f"{where} has a size or duration that is no number") from None
    return facts


def not_found(image: str) -> str:
    """What containerd says of an image that the registry does not have."""
    return (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{image}": '
        f"failed to resolve image: {image}: not found"
    )


def _document(pod: podspec.Pod, annotation: str) -> Mapping[str, Any]:
    text = pod.annotations.get(annotation)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise errors.InputError(f"{_where(pod, annotation)} is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise errors.InputError(f"{_where(pod, annotation)} must be an object by name")
    return found


def _one(pod: podspec.Pod, spec: podspec.Container, words: object) -> Behavior:
    if words is None:
        said = _scripted(pod, spec)
        # Unknown init containers are done at once: what they would do is not known.
        done = spec.init and not spec.sidecar and said is PLAIN
        return Behavior(exit_after_seconds=0.0) if done else _as_first_process(pod, spec, said)
    try:
        return _as_first_process(pod, spec, Behavior.model_validate(words))
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in (spec.name, *first["loc"]))
        raise errors.InputError(
            f"{_where(pod, names.BEHAVIOR)}: {place}: {first['msg']}"
        ) from error


def _scripted(pod: podspec.Pod, spec: podspec.Container) -> Behavior:
    """What its command says, where that is understood; else a server that listens for ever."""
    lacks = installed.lack(spec.raw)
    if lacks is not None:
        # What there is of it ends at once: an interpreter, a shell, or nothing at all.
        return Behavior(
            listen=False,
            exit_after_seconds=ABSENT_S,
            exit_code=lacks.exit_code,
            log=(f"{ABSENT_S:g} {lacks.line}",) if lacks.line else (),
            start_error=lacks.start_error,
        )
    command = _command(spec)
    if imagenames.command(spec.image) == greeting.COMMAND:
        return _greeting(command)
    if scripts.reads_input(command):
        return _reader(pod, spec, command)
    path = str(spec.raw.get("terminationMessagePath") or scripts.MESSAGE_FILE)
    found = scripts.read(command, path)
    if found is None:
        return PLAIN
    return Behavior(
        listen=False,
        exit_after_seconds=found.seconds,
        exit_code=found.exit_code,
        log=tuple(f"{at_s:g} {text}" for at_s, text in found.log),
        termination_message=found.message,
    )


def _command(spec: podspec.Container) -> list[str]:
    """All words of its first process, as far as they are known; empty for a program of the image's.

    Arguments alone go to the image's entrypoint, of which nothing is known, or are the command.
    """
    image, given = spec.image, [str(word) for word in spec.raw.get("command") or ()]
    arguments = [str(word) for word in spec.raw.get("args") or ()]
    if given or (arguments and not imagenames.has_entrypoint(image)):
        return [*given, *arguments]
    return [] if arguments else list(imagenames.command(image))


def _greeting(command: Sequence[str]) -> Behavior:
    """The image hello-world holds nothing but its program."""
    if tuple(command) != greeting.COMMAND:
        return Behavior(listen=False, start_error=greeting.refusal(command[0]))
    log = tuple(f"0 {line}" for line in greeting.TEXT.splitlines())
    return Behavior(listen=False, exit_after_seconds=0.0, log=log)


def _reader(pod: podspec.Pod, spec: podspec.Container, command: Sequence[str]) -> Behavior:
    """A shell or an interpreter: nobody writes to it, and without an input it is done at once.

    An input that stays open, or a terminal, keeps it waiting.
    """
    if not (spec.raw.get("tty") or spec.raw.get("stdin")):
        return Behavior(listen=False, exit_after_seconds=0.0)
    # Interactive shells ignore SIGTERM, whatever their number.
    shell = PurePosixPath(command[0]).name in scripts.SHELLS and bool(spec.raw.get("tty"))
    deaf = scripts.waits_without_handler(command) and _is_first_process(pod)
    return Behavior(listen=False, ignores_term=shell or deaf)


def _as_first_process(pod: podspec.Pod, spec: podspec.Container, said: Behavior) -> Behavior:
    """Plain shells and tools ignore SIGTERM as PID 1, unless a behaviour of their own is given."""
    command = [str(word) for key in ("command", "args") for word in spec.raw.get(key) or ()]
    if not command:
        return said
    trapped = any("trap " in word for word in command)
    if _is_first_process(pod) and not trapped and PurePosixPath(command[0]).name in UNHANDLED:
        return _ignoring_term(said)
    return said


def _is_first_process(pod: podspec.Pod) -> bool:
    """Whether its containers' programs are number 1, each in a PID namespace of its own."""
    return not pod.raw["spec"].get("shareProcessNamespace") and not pod.raw["spec"].get("hostPID")


def _ignoring_term(said: Behavior) -> Behavior:
    """The same, in all runs of which nothing else is said."""
    later = None if said.later is None else _ignoring_term(said.later)
    ignores = said.ignores_term or said.term_after_seconds is None
    return said.model_copy(update={"ignores_term": ignores, "later": later})


def _where(pod: podspec.Pod, annotation: str) -> str:
    return f"annotation {annotation} of pod {pod.namespace}/{pod.name}"
