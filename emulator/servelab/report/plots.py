"""Plots as SVG, without scripts, fonts or anything from a network. Pure."""

import html
import math
from collections.abc import Sequence

from servelab.report import axes, front
from servelab.report.axes import Axis

# Colours that also people with a colour-vision deficiency tell apart (Okabe and Ito); the next
# round of them is dashed. All else has the colour of the text around, light or dark.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#888888")
DASHES = ("", "6 3", "2 3")
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 14, 26, 36
_LINE = 13  # pixels between labels that would lie on each other
_FAINT = 'stroke="currentColor" stroke-opacity="0.5"'

Points = Sequence[tuple[float, float]]


def colour(number: int) -> str:
    """Of the series with this number."""
    return COLOURS[number % len(COLOURS)]


def dash(number: int) -> str:
    """Of the series with this number, as SVG writes it."""
    return DASHES[number // len(COLOURS) % len(DASHES)]


def steps(
    points: Points,
    end_s: float,
    title: str,
    *,
    top: float,
    needed: Points = (),
    colour: str = COLOURS[0],
    width: int = 860,
    height: int = 150,
) -> str:
    """A step function of time as a filled area. ``points`` are (seconds, value from then on).

    ``needed`` is another, drawn over it as a dark line.
    """
    x = axes.even(end_s, _LEFT, width - _LEFT - _RIGHT)
    y = axes.even(max(1.0, top), height - _BOTTOM, -(height - _TOP - _BOTTOM), whole=True)
    way = _stairs(points, end_s, x, y)
    body = f'<path d="{way}V{y.at(0):.0f}Z" fill="{colour}" fill-opacity="0.5" stroke="{colour}"/>'
    if needed:
        line = _stairs(needed, end_s, x, y)
        body += f'<path d="{line}" fill="none" stroke="currentColor" stroke-width="0.8"/>'
    minutes = Axis(0.0, x.high / 60, x.start, x.length)
    return _frame(body, title, width, height, minutes, y, "min", "")


def scatter(
    named: Sequence[tuple[str, float, float]],
    title: str,
    x_unit: str,
    y_unit: str,
    *,
    width: int = 860,
    height: int = 360,
) -> str:
    """Named points by two figures that should be low, and the front of those that nothing beats.

    The second is drawn by powers of ten; what is not a number is left out.
    """
    shown = [(n, *each) for n, each in enumerate(named) if all(map(math.isfinite, each[1:]))]
    x = axes.even(max((e[2] for e in shown), default=1.0) * 1.15, _LEFT, width - _LEFT - _RIGHT)
    y = axes.powers([e[3] for e in shown], height - _BOTTOM, -(height - _TOP - _BOTTOM))
    best = [shown[n] for n in front.front([(e[2], e[3]) for e in shown])]
    body = _front([(x.at(e[2]), y.at(e[3])) for e in best], x.start + x.length, y.start + y.length)
    places = _labels([(x.at(e[2]), y.at(e[3])) for e in shown])
    for (number, name, x_value, y_value), (text_x, text_y) in zip(shown, places, strict=True):
        at_x, at_y = x.at(x_value), y.at(y_value)
        fill = "none" if dash(number) else colour(number)
        body += (
            f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="5" fill="{fill}" '
            f'stroke="{colour(number)}" stroke-width="2">'
            f"<title>{html.escape(name)}: {x_value:.2f} {x_unit}, {y_value:.2f} {y_unit}</title>"
            "</circle>" + _named(text_x, text_y, name)
        )
    return _frame(body, title, width, height, x, y, x_unit, y_unit)


def shares(
    named: Sequence[tuple[str, Sequence[float]]],
    title: str,
    unit: str,
    *,
    mark: float | None = None,
    width: int = 860,
    height: int = 320,
) -> str:
    """For each series the share of its values that are at most so high; ``mark`` is a limit.

    Values are drawn by powers of ten, from the first percentile on.
    """
    ordered = [(name, sorted(values)) for name, values in named]
    spread = [value for _, values in ordered for value in (*_at(values, 0.01), *_at(values, 1.0))]
    x = axes.powers(spread, _LEFT, width - _LEFT - _RIGHT - 110)
    y = axes.even(100.0, height - _BOTTOM, -(height - _TOP - _BOTTOM))
    body = ""
    if mark is not None and x.low < mark < x.high:
        at_x = x.at(mark)
        body += f'<path d="M{at_x:.1f},{y.start}V{_TOP}" {_FAINT} stroke-dasharray="4 3"/>'
        body += f'<text x="{at_x + 4:.1f}" y="{y.start - 6}">{mark:g} {unit}</text>'
    for number, (name, values) in enumerate(ordered):
        way = _rising(values, x, y)
        body += f'<path d="{way}" fill="none" stroke-width="1.6" {_style(number)}/>' if way else ""
        body += _key(number, name, width)
    return _frame(body, title, width, height, x, y, unit, "%")


def fronts(
    named: Sequence[tuple[str, Sequence[tuple[float, float, str]]]],
    title: str,
    x_unit: str,
    y_unit: str,
    *,
    width: int = 860,
    height: int = 420,
) -> str:
    """Several fronts of two figures that should be low: (x, y, what it is), by x from low to high.

    Stairs join the points of each: what lies above and to the right of them is worse. Both figures
    are drawn by powers of ten. The first front is drawn last, over the others, and thicker.
    """
    whole = [each for _, points in named for each in points]
    x = axes.powers([each[0] for each in whole], _LEFT, width - _LEFT - _RIGHT - 110)
    y = axes.powers([each[1] for each in whole], height - _BOTTOM, -(height - _TOP - _BOTTOM))
    body = ""
    for number, (name, points) in reversed(list(enumerate(named))):
        places = [(x.at(each[0]), y.at(each[1])) for each in points]
        stroke = f'stroke-width="{1.4 if number else 2.4}" {_style(number)}'
        way = _stairway(places, x.start + x.length, y.start + y.length)
        body += f'<path d="{way}" fill="none" {stroke}/>' if way else ""
        for (at_x, at_y), (x_value, y_value, what) in zip(places, points, strict=True):
            said = f"{name}, {what}: {x_value:.2f} {x_unit}, {y_value:.2f} {y_unit}"
            body += (
                f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="4" fill="{colour(number)}">'
                f"<title>{html.escape(said)}</title></circle>"
            )
        body += _key(number, name, width)
    return _frame(body, title, width, height, x, y, x_unit, y_unit)


def _style(number: int) -> str:
    """The line of the series with this number."""
    return f'stroke="{colour(number)}" stroke-dasharray="{dash(number) or "none"}"'


def _key(number: int, name: str, width: int) -> str:
    """Name and line of a series, to the right of the plot."""
    at_x, at_y = width - _RIGHT - 100, _TOP + 12 + number * 15
    line = f'<path d="M{at_x},{at_y - 4}h20" stroke-width="2" {_style(number)}/>'
    return f'{line}<text x="{at_x + 26}" y="{at_y}">{html.escape(name)}</text>'


def _named(at_x: float, at_y: float, name: str) -> str:
    """A name with the page's colour around it, so that lines do not run through it."""
    where, text = f'x="{at_x:.1f}" y="{at_y:.1f}"', f">{html.escape(name)}</text>"
    return f'<text class="halo" {where} stroke="#fff" stroke-width="3"{text}<text {where}{text}'


def _at(values: Sequence[float], share: float) -> Sequence[float]:
    return [values[min(len(values) - 1, int(share * len(values)))]] if values else []


def _rising(values: Sequence[float], x: Axis, y: Axis, most: int = 300) -> str:
    """The way of a share through sorted values, by at most so many of them."""
    if not values:
        return ""
    places = sorted({round(n * (len(values) - 1) / most) for n in range(most + 1)})
    way = [f"{x.at(values[n]):.1f},{y.at(100 * (n + 1) / len(values)):.1f}" for n in places]
    return f"M{x.at(values[0]):.1f},{y.at(0):.1f}L" + " ".join(way)


def _stairs(points: Points, end_s: float, x: Axis, y: Axis) -> str:
    """The way of a step function from the left edge to the right, from 0 on."""
    way = [f"M{x.start:.0f},{y.at(0):.0f}"]
    for at_s, value in thinned(points, end_s, int(x.length)):
        way.append(f"H{x.at(at_s):.1f}V{y.at(value):.1f}")
    return "".join([*way, f"H{x.start + x.length:.1f}"])


def thinned(points: Points, end_s: float, columns: int) -> Points:
    """A step function with at most one step a column: to the highest value in it."""
    if len(points) <= columns:
        return points
    found: list[tuple[float, float]] = []
    value, place = 0.0, 0
    for column in range(columns):
        highest, until_s = value, (column + 1) * end_s / columns
        while place < len(points) and points[place][0] < until_s:
            value = points[place][1]
            highest, place = max(highest, value), place + 1
        if not found or found[-1][1] != highest:
            found.append((column * end_s / columns, highest))
    return found


def _front(places: Points, right: float, top: float) -> str:
    """Stairs through the points that nothing beats: what lies above and to the right is worse."""
    way = _stairway(places, right, top)
    return f'<path d="{way}" fill="none" {_FAINT} stroke-dasharray="4 3"/>' if way else ""


def _stairway(places: Points, right: float, top: float) -> str:
    if not places:
        return ""
    way = [f"M{places[0][0]:.1f},{top:.1f}V{places[0][1]:.1f}"]
    way += [f"H{at_x:.1f}V{at_y:.1f}" for at_x, at_y in places[1:]]
    return f"{''.join(way)}H{right:.1f}"


def _labels(places: Points, reach: float = 90.0) -> Points:
    """Where the names of points are written: beside them, lower where another name or point is."""
    taken: list[tuple[float, float]] = []
    found = {}
    for place in sorted(range(len(places)), key=lambda n: (places[n][1], places[n][0])):
        at_x, at_y = places[place][0] + 9, places[place][1] + 4
        near = [y + 4 for x, y in places if at_x < x + 6 < at_x + reach]
        while any(abs(at_x - x) < reach and abs(at_y - y) < _LINE for x, y in taken) or any(
            abs(at_y - y) < _LINE - 2 for y in near
        ):
            at_y += 1
        taken.append((at_x, at_y))
        found[place] = at_x, at_y
    return [found[n] for n in range(len(places))]


def _frame(
    body: str, title: str, width: int, height: int, x: Axis, y: Axis, x_unit: str, y_unit: str
) -> str:
    marks = [f'<text x="{_LEFT}" y="16" font-weight="bold">{html.escape(title)}</text>']
    for tick in x.ticks():
        text = f"{axes.label(tick)} {x_unit}".strip()
        marks.append(f'<path d="M{x.at(tick):.1f},{height - _BOTTOM}v4" {_FAINT}/>')
        marks.append(
            f'<text x="{x.at(tick):.1f}" y="{height - 16}" text-anchor="middle">{text}</text>'
        )
    for tick in y.ticks(4):
        at_y, text = y.at(tick), f"{axes.label(tick)} {y_unit}".strip()
        marks.append(f'<text x="{_LEFT - 6}" y="{at_y + 4:.1f}" text-anchor="end">{text}</text>')
        line = f'd="M{_LEFT},{at_y:.1f}h{x.length:.1f}" fill="none"'
        marks.append(f'<path {line} stroke="currentColor" stroke-opacity="0.15"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'role="img" aria-label="{html.escape(title)}" font-family="sans-serif" font-size="11" '
        'fill="currentColor">'
        f"{''.join(marks)}{body}</svg>"
    )
