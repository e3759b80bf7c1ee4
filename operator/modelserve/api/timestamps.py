"""Wall-clock stamps in the two forms of the Kubernetes API, written and read."""

import datetime
import functools
import math


def format_time(wall_s: float) -> str:
    """``Time``: Unix seconds as RFC 3339, cut to whole seconds."""
    return _second(math.floor(wall_s))


def format_micro_time(wall_s: float) -> str:
    """``MicroTime``, as in Leases: Unix seconds as RFC 3339 with six decimals."""
    return _utc(wall_s).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> float:
    """RFC 3339 as Unix seconds; one without an offset is UTC. Raises ValueError."""
    moment = datetime.datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def parse_if_any(text: str | None) -> float | None:
    """The same for what somebody else may have written: None if it is none."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None


@functools.lru_cache(maxsize=1024)
def _second(wall_s: int) -> str:
    """Where much is told, most of it is of the same few seconds."""
    return _utc(wall_s).strftime("%Y-%m-%dT%H:%M:%SZ")


def _utc(wall_s: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(wall_s, tz=datetime.UTC)
