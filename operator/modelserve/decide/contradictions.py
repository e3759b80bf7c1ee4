"""Arguments and variables of an engine that say otherwise than the fields of its spec.

Whatever its parser makes of the command line counts: of a flag that comes twice, the last one.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from modelserve import errors
from modelserve.api import spec as specs
from modelserve.engines import launch, types

# Fields of the spec, and what a container says of the same.
_FIELDS = {
    "gpu.tensorParallel": "tensor_parallel",
    "engine.batching.maxSequences": "max_sequences",
    "engine.batching.maxBatchedTokens": "max_batched_tokens",
    "engine.maxModelLength": "max_model_tokens",
    "model.servedName": "served_name",
    "": "port",  # no field: the Service and the probes go to one port
}


@dataclass(frozen=True, slots=True)
class _Word:
    """A part of ``engine.args`` or a variable of ``engine.env``; one of both is empty."""

    args: tuple[str, ...] = ()
    env: tuple[str, str] | None = None

    def told(self) -> str:
        """As a sentence names it."""
        return f"engine.env {'='.join(self.env)}" if self.env else f"engine.args {self._line()}"

    def _line(self) -> str:
        return " ".join(self.args)


def find(spec: specs.ModelServeSpec, wanted: types.LaunchSpec) -> str | None:
    """What contradicts the spec, and the mend, in a sentence; None if nothing does.

    ``wanted`` is what the spec asks of the engine, its further arguments among it.
    """
    words = [*_parts(wanted.extra_args), *(_Word(env=(e.name, e.value)) for e in spec.engine.env)]
    if not words or (found := _read(wanted, words)) is None:
        return None
    plain = _read(wanted, [])
    for field, name in _FIELDS.items():
        said, meant = getattr(found, name), getattr(wanted, name)
        # What the engine has no word for is the same without them.
        if said in (meant, getattr(plain, name, meant)):
            continue
        if name == "max_model_tokens" and spec.engine.max_model_length is None:
            continue  # The spec leaves it to others.
        culprit = next((word for word in reversed(words) if _says(wanted, word, name, said)), None)
        if culprit is not None:
            return _sentence(culprit, field, said, meant)
    return None


def _parts(args: Sequence[str]) -> Iterator[_Word]:
    """Each flag with its values."""
    starts = [n for n, word in enumerate(args) if n == 0 or word.startswith("-")]
    for begin, end in itertools.pairwise([*starts, len(args)]):
        yield _Word(tuple(args[begin:end]))


def _says(wanted: types.LaunchSpec, word: _Word, name: str, value: object) -> bool:
    found = _read(wanted, [word])
    return found is not None and getattr(found, name) == value


def _read(wanted: types.LaunchSpec, words: Sequence[_Word]) -> types.LaunchSpec | None:
    """What the engine reads with these words; None if it refuses them: it says so itself."""
    args = tuple(arg for word in words for arg in word.args)
    # A length past the context is judged elsewhere, and may hang on a variable.
    longest = min(wanted.max_model_tokens, wanted.model.max_context_tokens)
    told = dataclasses.replace(wanted, extra_args=args, max_model_tokens=longest)
    rendered = launch.render(told)
    env: Mapping[str, str] = {**rendered.env, **dict(word.env for word in words if word.env)}
    container = {
        "image": rendered.image,
        "command": list(rendered.command),
        "args": list(rendered.args),
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    try:
        return launch.parse_spec(container, rendered.annotations)
    except errors.InputError:
        return None


def _sentence(culprit: _Word, field: str, said: object, meant: object) -> str:
    if not field:
        return (
            f"{culprit.told()} makes the engine listen on port {said}, but its Service and probes "
            f"go to {meant}: take it out"
        )
    return (
        f"{culprit.told()} tells the engine {said}, but {field} is {meant}: take it out, or set "
        f"{field} to what is meant"
    )
