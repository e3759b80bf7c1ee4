"""How ``trtllm-serve`` says no."""

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.engine.surfaces.refusing import Refusal, Shape

QUEUE_FULL = "The request queue is full."
# One bad body can fail in thousands of places; the first are told.
TOLD_ERRORS = 10


def queue_full() -> Refusal:
    """The real server lets as many wait as come; this is for an engine that is told a limit."""
    return Refusal(QUEUE_FULL, status=503, kind="InternalServerError")


def schema(errors: Sequence[Any]) -> Refusal:
    """The body does not meet the schema; ``errors`` are pydantic's."""
    told = [f"  {_told(error)}" for error in errors[:TOLD_ERRORS]]
    plural = "s" if len(errors) != 1 else ""
    message = "\n".join([f"{len(errors)} validation error{plural}:", *told])
    return Refusal(message, shape=Shape.BARE)


def _told(error: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": error["type"],
        "loc": ("body", *error["loc"]),
        "msg": error["msg"],
        "input": str(error["input"])[:200],
    }
