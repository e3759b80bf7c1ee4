"""Plots and pages are well-formed, complete in themselves, and leave out what is no number."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

from servelab.report import page, plots


def test_a_step_plot_goes_through_its_points() -> None:
    svg = plots.steps([(0, 0), (50, 4)], 100, "a < b", top=4, width=174, height=162)
    assert "M60,126H60.0V126.0H110.0V26.0H160.0V126Z" in svg
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_long_series_is_drawn_by_the_highest_of_each_column() -> None:
    points = [(number / 10, float(number % 7)) for number in range(10_000)]
    thin = plots.thinned(points, 1000, 50)
    assert len(thin) <= 50
    assert max(value for _, value in thin) == 6


def test_what_is_needed_is_a_line_over_what_is_there() -> None:
    svg = plots.steps([(0, 1)], 100, "t", top=2, needed=[(10, 2)])
    assert svg.count('stroke="currentColor" stroke-width="0.8"') == 1


def test_a_share_rises_to_its_end_and_shows_the_limit() -> None:
    svg = plots.shares([("a & b", [1.0, 2.0, 30.0]), ("none", [])], "t", "s", mark=5.0)
    ElementTree.fromstring(svg)
    assert "a &amp; b" in svg
    assert "5 s" in svg


def test_names_of_points_do_not_lie_on_each_other() -> None:
    named = [(f"policy-{number}", 1.0, 1.0) for number in range(9)]
    root = ElementTree.fromstring(plots.scatter(named, "t", "h", "s"))
    texts = [each for each in root.iter() if (each.text or "").startswith("policy")]
    heights = sorted({float(each.attrib["y"]) for each in texts if "y" in each.attrib})
    assert len(heights) == 9
    assert all(b - a >= 13 for a, b in pairwise(heights))


def test_a_name_is_not_written_over_a_point_to_its_right() -> None:
    root = ElementTree.fromstring(
        plots.scatter([("long-name", 1.0, 1.0), ("b", 1.1, 1.0)], "t", "h", "s")
    )
    heights = {each.text: float(each.attrib["y"]) for each in root.iter() if "y" in each.attrib}
    points = [each for each in root.iter() if each.tag.endswith("circle")]
    assert heights["long-name"] - 4 - float(points[1].attrib["cy"]) > 9


def test_fronts_are_stairs_with_a_name_for_each_and_the_first_on_top() -> None:
    named = [("a & b", [(1.0, 9.0, "cheap"), (4.0, 2.0, "quick")]), ("other", [(2.0, 5.0, "o")])]
    root = ElementTree.fromstring(plots.fronts(named, "t", "h", "s"))
    said = [each.text for each in root.iter() if each.tag.endswith("title")]
    assert said == [
        "other, o: 2.00 h, 5.00 s",
        "a & b, cheap: 1.00 h, 9.00 s",
        "a & b, quick: 4.00 h, 2.00 s",
    ]
    lines = [each for each in root.iter() if each.attrib.get("stroke-width") in ("1.4", "2.4")]
    assert [each.attrib["d"].count("H") for each in lines] == [1, 2]


def test_a_front_without_points_has_a_name_and_no_line() -> None:
    root = ElementTree.fromstring(plots.fronts([("none", [])], "t", "h", "s"))
    assert not [each for each in root.iter() if each.tag.endswith("circle")]
    assert [each.text for each in root.iter()].count("none") == 1


def test_plots_are_drawn_in_the_colour_of_the_text_around() -> None:
    """On a dark page too: nothing but series has a colour of its own."""
    drawn = [
        plots.steps([(0, 1)], 100, "t", top=2, needed=[(10, 2)], colour="red"),
        plots.shares([], "t", "s", mark=5.0),
        plots.scatter([], "t", "h", "s"),
    ]
    assert not any("#" in svg for svg in drawn)


def test_no_points_are_a_flat_line() -> None:
    root = ElementTree.fromstring(plots.steps([], 100, "nothing", top=0))
    (line,) = (each.attrib["d"] for each in root.iter() if each.attrib.get("fill-opacity"))
    assert re.fullmatch(r"M60,(\d+)H846\.0V\1Z", line)


def test_a_scatter_leaves_out_what_is_no_number() -> None:
    svg = plots.scatter([("one", 1, 2), ("none", math.nan, 1)], "t", "h", "s")
    assert "one" in svg
    assert "none" not in svg.replace('fill="none"', "")


def test_a_page_needs_nothing_from_a_network() -> None:
    figures = [page.Figure(plots.scatter([], "t", "h", "s"), "read <so>")]
    text = page.render("<t>", ["a & b"], ["h"], [["1"]], figures)
    assert "&lt;t&gt;" in text
    assert "read &lt;so&gt;" in text
    bare = text.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not any(word in bare for word in ("http:", "https:", "src=", "<script", "@import"))
