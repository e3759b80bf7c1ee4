"""Sizes, rates and Kubernetes quantities: text to numbers and back.

Bytes take decimal suffixes (kB, MB, GB, TB and Kubernetes' k, M, G, T) as powers of 1000 and binary
ones (KiB, MiB, GiB, TiB, Ki, Mi, Gi, Ti) as powers of 1024.
"""

import re

from modelserve import errors

_UNITS: dict[str, int] = {
    "": 1,
    **{f"{p}{b}": 1000**n for n, p in enumerate("kMGTP", 1) for b in ("", "B")},
    **{f"K{b}": 1000 for b in ("B",)},
    **{f"{p}i{b}": 1024**n for n, p in enumerate("KMGTP", 1) for b in ("", "B")},
    "B": 1,
}
# The form the CRD schema checks; kept here so that schema and parser cannot part ways.
BYTES_PATTERN = r"^[0-9]+(\.[0-9]+)?\s?([kKMGTP]i?)?B?$"
RATE_PATTERN = r"^[0-9]+(\.[0-9]+)?\s?([kKMGTP]i?)?B?/s$"
_NUMBER = re.compile(r"^([0-9]+(?:\.[0-9]+)?)\s?([A-Za-z]*)$")


def parse_bytes(text: str) -> int:
    """Read ``9GB``, ``256MiB``, ``1Ti`` as bytes. Raises QuantityError."""
    match = _NUMBER.match(text.strip())
    if match is None or match[2] not in _UNITS:
        raise errors.QuantityError(f"{text!r} is no size; write for instance 9GB or 256MiB")
    return round(float(match[1]) * float(_UNITS[match[2]]))


def parse_rate(text: str) -> float:
    """Read ``2GB/s`` as bytes per second. Raises QuantityError, also for a rate of zero."""
    head, slash, tail = text.strip().rpartition("/")
    if not slash or tail != "s":
        raise errors.QuantityError(f"{text!r} is no rate; write for instance 2GB/s or 500MiB/s")
    rate = float(parse_bytes(head))
    if rate <= 0:
        raise errors.QuantityError(f"{text!r}: a rate must be greater than zero")
    return rate


def format_bytes(n_bytes: float) -> str:
    """Write bytes for people with decimal units and one decimal: ``16.1 GB``."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(n_bytes) >= size:
            return f"{n_bytes / size:.1f} {unit}"
    return f"{n_bytes:.0f} B"


def format_rate(bytes_per_s: float) -> str:
    """Write a rate so that ``parse_rate`` reads it back to six digits: ``250MB/s``."""
    scales = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))
    unit, size = next((s for s in scales if bytes_per_s >= s[1]), scales[-1])
    # Never in exponent form, which no quantity has.
    number = f"{bytes_per_s / size:.6f}".rstrip("0").rstrip(".")
    return f"{number}{unit}/s"
