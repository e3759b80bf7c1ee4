"""What the catalogue does not tell of a GPU: power, clocks, temperatures, by catalogue key.

Power limits and clocks are the vendor's data sheets'; idle power and temperatures are our choice.
"""

from dataclasses import dataclass

from modelserve.catalog import gpus


@dataclass(frozen=True, slots=True)
class Board:
    """Watts, MHz, degrees Celsius."""

    limit_w: float
    idle_w: float
    sm_mhz: int
    memory_mhz: int
    idle_sm_mhz: int = 210
    idle_c: int = 30
    full_c: int = 66


BOARDS = {
    "v100-sxm2-32g": Board(300, 42, 1530, 877, 135),
    "v100s-pcie-32g": Board(250, 36, 1597, 1107, 135),
    "t4": Board(70, 10, 1590, 5001, 300, 38, 72),
    "a10g": Board(300, 16, 1710, 6251, 210, 38, 72),
    "a100-sxm-40g": Board(400, 52, 1410, 1215),
    "a100-sxm-80g": Board(400, 62, 1410, 1593),
    "a100-pcie-80g": Board(300, 44, 1410, 1512),
    "l4": Board(72, 12, 2040, 6251, 210, 38, 72),
    "l40s": Board(350, 34, 2520, 9001),
    "h100-pcie": Board(350, 48, 1755, 1593, 345),
    "h100-nvl": Board(400, 60, 1785, 2619, 345),
    "h100-sxm": Board(700, 71, 1980, 2619, 345),
    "h200-sxm": Board(700, 76, 1980, 3201, 345),
    "h20-3e": Board(500, 72, 1980, 3201, 345),
    "b200-sxm": Board(1000, 140, 1965, 3996, 120),
    "gb200": Board(1200, 160, 2062, 3996, 120),
    "rtx3090": Board(350, 24, 1695, 9751, 210, 36, 74),
    "rtx4090": Board(450, 22, 2520, 10501, 210, 36, 74),
    "rtx5090": Board(575, 26, 2407, 14001, 180, 36, 74),
    "rtx-a6000": Board(300, 22, 1800, 8001, 210, 36, 74),
    "rtx6000-ada": Board(300, 24, 2505, 10001, 210, 36, 74),
}
_UNKNOWN = Board(350, 30, 1700, 2000)


def of(gpu: gpus.Gpu) -> Board:
    """The board; a middling one where none is known."""
    return BOARDS.get(gpu.key, _UNKNOWN)
