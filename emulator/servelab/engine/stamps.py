"""Time in log lines: a line says where and how, and gets it when it is written."""

import datetime
import re

_MARK = re.compile(r"\{at:([^}]*)\}")


def mark(form: str) -> str:
    """A place in a line for the time, in the words of strftime, and ``%L`` for milliseconds."""
    return f"{{at:{form}}}"


def stamped(line: str, at_unix_s: float) -> str:
    """The line with the time (UTC) at its marks."""
    if "{at:" not in line:
        return line
    at = datetime.datetime.fromtimestamp(at_unix_s, datetime.UTC)
    milliseconds = f"{at.microsecond // 1000:03d}"
    return _MARK.sub(lambda match: at.strftime(match[1].replace("%L", milliseconds)), line)
