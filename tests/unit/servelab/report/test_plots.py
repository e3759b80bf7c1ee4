"""Plots and pages are well-formed, complete in themselves, and leave out what is no number."""

import math
from xml.etree import ElementTree

from servelab.report import page, plots


def test_a_step_plot_goes_through_its_points() -> None:
    svg = plots.steps([(0, 0), (50, 4)], 100, "a < b", top=4, width=168, height=156)
    assert "M56,122H56.0V122.0H106.0V22.0H156.0V22.0V122Z" in svg
    assert ElementTree.fromstring(svg).tag == "svg"


def test_no_points_are_a_flat_line() -> None:
    ElementTree.fromstring(plots.steps([], 100, "nothing", top=0))


def test_a_scatter_leaves_out_what_is_no_number() -> None:
    svg = plots.scatter([("one", 1, 2), ("none", math.nan, 1)], "t", "h", "s")
    assert "one" in svg
    assert "none" not in svg.replace('fill="none"', "")


def test_a_page_needs_nothing_from_a_network() -> None:
    text = page.render("<t>", ["a & b"], ["h"], [["1"]], [plots.scatter([], "t", "h", "s")])
    assert "&lt;t&gt;" in text
    assert not any(word in text for word in ("http:", "https:", "src=", "<script", "@import"))
