"""A page of HTML with a table and plots, complete in itself. Pure."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

_STYLE = (
    "body{font-family:sans-serif;margin:2em auto;max-width:66em;padding:0 1em;color:#222;"
    "background:#fff;line-height:1.4}"
    "table{border-collapse:collapse;margin:1em 0;font-size:.9em;font-variant-numeric:tabular-nums}"
    "td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}"
    "td:first-child,th:first-child{text-align:left}tbody tr:hover{background:#f3f6fa}"
    "figure{margin:1.5em 0}figcaption{color:#555;font-size:.9em}"
    "svg{display:block;max-width:100%;height:auto}.table{overflow-x:auto}"
)


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot, an SVG element, and a sentence on how to read it, which may be empty."""

    svg: str
    caption: str = ""


def render(
    title: str,
    paragraphs: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    figures: Sequence[Figure],
) -> str:
    """The page."""
    said = "".join(f"<p>{html.escape(each)}</p>" for each in paragraphs)
    head = "".join(f"<th>{html.escape(each)}</th>" for each in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>{said}\n"
        f'<div class="table"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
        + "\n".join(_figure(each) for each in figures)
        + "\n</body></html>\n"
    )


def _figure(figure: Figure) -> str:
    said = f"<figcaption>{html.escape(figure.caption)}</figcaption>" if figure.caption else ""
    return f"<figure>{figure.svg}{said}</figure>"
