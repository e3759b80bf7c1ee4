"""Time in log lines: a line says where and how, and gets it when it is written."""

import datetime
import functools
import re

_MARK = re.compile(r"\{at:([^}]*)\}")
_PART = re.compile("%[fL]")


def mark(form: str) -> str:
    """A place in a line for the time, in the words of strftime, and ``%L`` for milliseconds."""
    return f"{{at:{form}}}"


def stamped(line: str, at_unix_s: float) -> str:
    """The line with the time (UTC) at its marks."""
    if "{at:" not in line:
        return line
    whole_s, microseconds = divmod(round(at_unix_s * 1e6), 1_000_000)
    parts = {"%f": f"{microseconds:06d}", "%L": f"{microseconds // 1000:03d}"}

    def told(match: re.Match[str]) -> str:
        text = _told(match[1], whole_s)
        return _PART.sub(lambda part: parts[part[0]], text)

    return _MARK.sub(told, line)


@functools.lru_cache(maxsize=1024)
def _told(form: str, whole_s: int) -> str:
    """Who starts says many lines in a second; the parts of a second are left."""
    at = datetime.datetime.fromtimestamp(whole_s, datetime.UTC)
    return at.strftime(_PART.sub(r"%\g<0>", form))
