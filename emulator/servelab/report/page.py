"""A page of HTML with a table and plots, complete in itself. Pure."""

import html
from collections.abc import Sequence

_STYLE = (
    "body{font-family:sans-serif;margin:2em auto;max-width:60em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}"
    "td,th{padding:.25em .7em;text-align:right;border-bottom:1px solid #ddd}"
    "td:first-child,th:first-child{text-align:left}svg{display:block;margin:1em 0;max-width:100%}"
)


def render(
    title: str,
    paragraphs: Sequence[str],
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    plots: Sequence[str],
) -> str:
    """The page. ``plots`` are SVG elements, everything else is text."""
    said = "".join(f"<p>{html.escape(each)}</p>" for each in paragraphs)
    head = "".join(f"<th>{html.escape(each)}</th>" for each in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{html.escape(title)}</h1>{said}\n"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>\n"
        + "\n".join(plots)
        + "\n</body></html>\n"
    )
