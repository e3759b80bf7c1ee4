"""Wall-clock stamps in the two forms of the Kubernetes API."""

import datetime


def format_time(wall_s: float) -> str:
    """``Time``: Unix seconds as RFC 3339, whole seconds."""
    return _utc(wall_s).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(wall_s: float) -> str:
    """``MicroTime``, as in Leases: Unix seconds as RFC 3339 with six decimals."""
    return _utc(wall_s).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _utc(wall_s: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(wall_s, tz=datetime.UTC)
