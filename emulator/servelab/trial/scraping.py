"""One number out of a process's Prometheus metrics."""

import asyncio
import re
import urllib.error
import urllib.request

ANSWER_REAL_S = 5.0


async def read(url: str) -> str:
    """The text at ``url``; empty if nobody answers."""
    return await asyncio.to_thread(_read, url)


def total(text: str, name: str) -> float:
    """The sum of a metric over its label sets; NaN if it is not there."""
    found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)", text, re.MULTILINE)
    return sum(map(float, found)) if found else float("nan")


def mean(text: str, histogram: str) -> float:
    """Mean of a histogram's observations; NaN if there are none."""
    count = total(text, f"{histogram}_count")
    return total(text, f"{histogram}_sum") / count if count > 0 else float("nan")


def _read(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_REAL_S) as answer:
            return str(answer.read().decode("utf-8", "replace"))
    except (urllib.error.URLError, OSError, ValueError):
        return ""
