"""Kubernetes quantities as exact numbers, and back in the form that the API server writes."""

from decimal import Decimal, InvalidOperation

_LETTERS = "KMGTPE"
_DECIMAL = {"": Decimal(1), **{c: Decimal(1000) ** n for n, c in enumerate("kMGTPE", 1)}}
_BINARY = {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate(_LETTERS, 1)}
_SUFFIXES = {"m": Decimal("0.001"), **_DECIMAL, **_BINARY}


def parse(text: str) -> Decimal:
    """Read a quantity; the API server has checked it already, and what is none counts as 0."""
    number = text.rstrip("kKMGTPEim")
    try:
        return Decimal(number) * _SUFFIXES[text[len(number) :]]
    except (InvalidOperation, KeyError):
        return Decimal(text) if _is_number(text) else Decimal(0)


def write(amount: Decimal, like: str) -> str:
    """With the largest suffix that leaves no fraction; binary ones where ``like`` has one."""
    units = {"": Decimal(1), **_BINARY} if like.endswith("i") else _DECIMAL
    for suffix, size in reversed(units.items()):
        if amount and amount % size == 0:
            return f"{int(amount / size)}{suffix}"
    return f"{int(amount * 1000)}m" if amount else "0"


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True
