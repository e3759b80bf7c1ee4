"""Plots as SVG, without scripts, fonts or anything from a network. Pure."""

import html
import math
from collections.abc import Sequence

# Colours that also people with a colour-vision deficiency tell apart (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 12, 22, 34

Points = Sequence[tuple[float, float]]


def steps(
    points: Points,
    end_s: float,
    title: str,
    *,
    top: float,
    colour: str = COLOURS[0],
    width: int = 860,
    height: int = 130,
) -> str:
    """A step function of time as a filled area. ``points`` are (seconds, value from then on)."""
    inner_x, inner_y = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    top = max(1.0, top)
    way = [f"M{_LEFT},{_TOP + inner_y}"]
    for at_s, value in [*points, (end_s, points[-1][1] if points else 0.0)]:
        x = _LEFT + inner_x * min(1.0, max(0.0, at_s / end_s))
        way.append(f"H{x:.1f}V{_TOP + inner_y * (1 - value / top):.1f}")
    way.append(f"V{_TOP + inner_y}Z")
    body = f'<path d="{"".join(way)}" fill="{colour}" fill-opacity="0.6" stroke="{colour}"/>'
    return _frame(body, title, width, height, (0.0, end_s / 60), (0.0, top), "min", "")


def scatter(
    named: Sequence[tuple[str, float, float]],
    title: str,
    x_unit: str,
    y_unit: str,
    *,
    width: int = 860,
    height: int = 320,
) -> str:
    """Named points by two figures, both axes from 0; what is not a number is left out."""
    shown = [each for each in named if math.isfinite(each[1]) and math.isfinite(each[2])]
    most_x = max([each[1] for each in shown], default=1.0) * 1.15 or 1.0
    most_y = max([each[2] for each in shown], default=1.0) * 1.1 or 1.0
    inner_x, inner_y = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    marks = []
    for number, (name, x, y) in enumerate(shown):
        at_x, at_y = _LEFT + inner_x * x / most_x, _TOP + inner_y * (1 - y / most_y)
        colour = COLOURS[number % len(COLOURS)]
        marks.append(
            f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="5" fill="{colour}"/>'
            f'<text x="{at_x + 8:.1f}" y="{at_y + 4:.1f}">{html.escape(name)}</text>'
        )
    sizes = (0.0, most_x), (0.0, most_y)
    return _frame("".join(marks), title, width, height, *sizes, x_unit, y_unit)


def _frame(
    body: str,
    title: str,
    width: int,
    height: int,
    x_range: tuple[float, float],
    y_range: tuple[float, float],
    x_unit: str,
    y_unit: str,
) -> str:
    inner_x, inner_y = width - _LEFT - _RIGHT, height - _TOP - _BOTTOM
    marks = [f'<text x="{_LEFT}" y="14" font-weight="bold">{html.escape(title)}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, value = _LEFT + share * inner_x, x_range[0] + share * (x_range[1] - x_range[0])
        label = f"{value:.3g} {x_unit}".strip()
        marks.append(f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle">{label}</text>')
    for share in (0.0, 0.5, 1.0):
        y, value = _TOP + (1 - share) * inner_y, y_range[0] + share * (y_range[1] - y_range[0])
        label = f"{value:.3g} {y_unit}".strip()
        marks.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label}</text>')
        marks.append(f'<path d="M{_LEFT},{y:.1f}h{inner_x}" stroke="#ccc" fill="none"/>')
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{html.escape(title)}" font-family="sans-serif" font-size="11">'
        f"{''.join(marks)}{body}</svg>"
    )
