"""From what the API server answers, or fails to answer, to the errors of ModelServe."""

import json
from collections.abc import Mapping
from typing import Any

from modelserve import errors

_BY_STATUS: dict[int, type[errors.ClusterError]] = {
    400: errors.Invalid,
    401: errors.Forbidden,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.Invalid,
    409: errors.Conflict,
    410: errors.Expired,
    413: errors.Invalid,
    415: errors.Invalid,
    422: errors.Invalid,
}
# kube-apiserver 1.37 answers 500 to a server-side apply with a field that the schema lacks, or with
# a quantity that is none.
_UNTYPED = ("failed to create typed patch object", "failed to convert new object")
# To the server the uid in an apply or a patch is a field that cannot change; to who names it there,
# it is what must be so.
_ANOTHER = "metadata.uid: Invalid value"


def parse_status(body: bytes) -> tuple[str, str]:
    """The message and reason of a Status object; of anything else its first 200 characters."""
    try:
        status = json.loads(body)
        return str(status.get("message") or ""), str(status.get("reason") or "")
    except (ValueError, AttributeError):
        return body[:200].decode(errors="replace").strip(), ""


def from_response(
    what: str, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> errors.ClusterError:
    """The error for an answer other than 2xx. ``what``: the request in words (GET /api/v1/…)."""
    message, reason = parse_status(body)
    text = f"{what}: {message or 'no message'} (HTTP {status})"
    untyped = message.startswith(_UNTYPED)
    kind = errors.Invalid if untyped else _BY_STATUS.get(status)
    if kind is errors.Invalid and _ANOTHER in message:
        kind = errors.Conflict
    if kind is not None:
        return kind(text, status, reason)
    return errors.Unavailable(text, status, reason, _retry_after_s(headers or {}))


def from_status(what: str, status: Mapping[str, Any]) -> errors.ClusterError:
    """The error for a Status object inside a watch stream."""
    return from_response(what, int(status.get("code") or 0), json.dumps(status).encode())


def from_exception(what: str, error: BaseException) -> errors.Unavailable:
    """The error for a request that got no answer: refused, reset, cut, timed out."""
    cause = str(error) or type(error).__name__
    return errors.Unavailable(f"{what}: {cause}")


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    # The other form, a date, is not sent by API servers.
    value = headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None
