"""The GPUs of a node by index: identity and place."""

import hashlib
from dataclasses import dataclass

# Where eight GPUs of a DGX H100 sit; others follow.
_BUSES = ("1B", "43", "52", "61", "9D", "C3", "D1", "DF")


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU of a node."""

    index: int
    uuid: str
    bus_id: str
    serial: str


def of_node(node: str, count: int) -> tuple[Device, ...]:
    """The GPUs of a node; the same name has the same ones."""
    return tuple(_device(node, index) for index in range(count))


def _device(node: str, index: int) -> Device:
    digits = hashlib.sha256(f"{node}/gpu/{index}".encode()).hexdigest()
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))
    bus = _BUSES[index] if index < len(_BUSES) else f"{0xE0 + index - len(_BUSES):02X}"
    serial = str(1_650_000_000_000 + int(digits[32:42], 16) % 10**9)
    return Device(index, f"GPU-{uuid}", f"00000000:{bus}:00.0", serial)
