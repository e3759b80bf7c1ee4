"""A page of HTML with a table and plots, complete in itself. Pure."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

_STYLE = (
    ":root{color-scheme:light dark;--ink:#222;--paper:#fff;--soft:#555;--rule:#ddd;--over:#f3f6fa}"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e4e4;--paper:#17191c;--soft:#aaa;"
    "--rule:#3a3d42;--over:#22262b}}"
    "body{font-family:sans-serif;margin:2em auto;max-width:66em;padding:0 1em;color:var(--ink);"
    "background:var(--paper);line-height:1.4}"
    "table{border-collapse:collapse;margin:1em 0;font-size:.9em;font-variant-numeric:tabular-nums}"
    "td,th{padding:.25em .6em;text-align:right;border-bottom:1px solid var(--rule);"
    "white-space:nowrap}th[scope=row]{font-weight:normal}"
    "tr>:first-child{text-align:left}tbody tr:hover{background:var(--over)}"
    "figure{margin:1.5em 0}figcaption{color:var(--soft);font-size:.9em}"
    "svg{display:block;max-width:100%;height:auto}.halo{stroke:var(--paper)}"
    ".table{overflow-x:auto}"
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
    head = "".join(f'<th scope="col">{html.escape(each)}</th>' for each in header)
    body = "".join(f"<tr>{_row(row)}</tr>" for row in rows)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><main><h1>{html.escape(title)}</h1>{said}\n"
        f'<div class="table" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
        + "\n".join(_figure(each) for each in figures)
        + "\n</main></body></html>\n"
    )


def _row(cells: Sequence[str]) -> str:
    """A row of the table, which its first cell names."""
    name, *others = (html.escape(cell) for cell in cells)
    return f'<th scope="row">{name}</th>' + "".join(f"<td>{cell}</td>" for cell in others)


def _figure(figure: Figure) -> str:
    said = f"<figcaption>{html.escape(figure.caption)}</figcaption>" if figure.caption else ""
    return f"<figure>{figure.svg}{said}</figure>"
