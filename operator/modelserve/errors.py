"""The errors of ModelServe, drawn as a tree.

ModelServeError
├── InputError              what a person gave cannot be used: what, where, how to mend it
│   ├── UnknownName         no such model, GPU, storage class or image; carries suggestions
│   ├── UsageError          an engine's own parser refuses its command line; it exits with 2
│   ├── StartRefused        an engine refuses what it was told once it looks; it exits with 1
│   └── QuantityError       a size, rate or duration that cannot be read
├── ClusterError            the Kubernetes API could not do what was asked
│   ├── NotFound            404
│   ├── Conflict            409: somebody else changed or owns it
│   ├── Expired             410: the resource version is too old, list again
│   ├── Invalid             400, 422: the API server refuses the content
│   ├── Forbidden           401, 403: our credentials do not allow it
│   └── Unavailable         no answer, 429 or 5xx: worth another try
└── SetUpError              something this machine lacks: a binary, a port, disk space
"""

from collections.abc import Sequence


class ModelServeError(Exception):
    """Root of all errors this project raises on purpose."""


class InputError(ModelServeError):
    """What a person gave cannot be used."""


class UnknownName(InputError):
    """A name that no catalogue entry has, with the nearest that exist, or what lists them all."""

    def __init__(
        self,
        kind: str,
        name: str,
        suggestions: Sequence[str] = (),
        known: Sequence[str] = (),
        listed_by: str = "",
    ) -> None:
        self.kind = kind
        self.name = name
        self.suggestions = tuple(suggestions)
        hint = f"; did you mean {' or '.join(self.suggestions)}?" if self.suggestions else ""
        hint = f"; there are {', '.join(known)}" if known else hint
        hint = f"; `{listed_by}` lists those there are" if listed_by and not hint else hint
        super().__init__(f"unknown {kind} {name!r}{hint}")


class UsageError(InputError):
    """An engine's own parser refuses its command line.

    The message is the engine's; ``usage`` is the line before it, ``hint`` a word of ours or empty.
    """

    def __init__(self, message: str, usage: str = "", hint: str = "") -> None:
        self.usage = usage
        self.hint = hint
        super().__init__(message)

    def told(self) -> str:
        """Our hint, and what the engine writes before it exits: its own words are the last."""
        return "\n".join(filter(None, (self.hint, self.usage, str(self))))


class StartRefused(InputError):
    """An engine refuses what it was told once it looks at its model; the message is its own."""


class QuantityError(InputError):
    """A size, rate or duration that cannot be read."""


class ClusterError(ModelServeError):
    """The Kubernetes API could not do what was asked; ``status`` is the HTTP status or 0."""

    def __init__(self, message: str, status: int = 0, reason: str = "") -> None:
        self.status = status
        self.reason = reason
        super().__init__(message)


class NotFound(ClusterError):
    """The object does not exist."""


class Conflict(ClusterError):
    """Somebody else changed the object or owns the field."""


class Expired(ClusterError):
    """The resource version is too old: list again."""


class Invalid(ClusterError):
    """The API server refuses the content."""


class Forbidden(ClusterError):
    """Our credentials do not allow it."""


class Unavailable(ClusterError):
    """No answer, or one that says try again; ``retry_after_s`` is the server's wish, if any."""

    def __init__(
        self, message: str, status: int = 0, reason: str = "", retry_after_s: float | None = None
    ) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(message, status, reason)


class SetUpError(ModelServeError):
    """Something this machine lacks: a binary, a port, disk space."""
