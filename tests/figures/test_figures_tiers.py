"""Figures of chapter 12: blocks as wide as they are large, bars where work is, an arrow for each pair that talks."""

import re
import xml.etree.ElementTree as ET

import pytest

from ringzero_course.figures.blocks import blocks, shares
from ringzero_course.figures.lanes import lanes
from ringzero_course.figures.traffic import traffic

SVG = "{http://www.w3.org/2000/svg}"
HELD = {"device": [("parameters", 2, 0), ("", 1, 1)], "host": [("states", 12, 2)], "file": []}
PARTS = {"parameters": (2, 4), "states": (12, 2)}
SHARES = {"rank 0": {"parameters": (0, 1), "states": (0, 0.25)}, "…": {}, "rank 3": {"states": (0.75, 1)}}
WORK = {"copies": [("a", 0, 1, 0), ("b", 1, 2, 1)], "compute": [("a", 1, 3, 0), ("b", 3, 5, 1)]}
SENT = {(0, 1): 100, (1, 2): 400, (2, 3): 100, (3, 0): 400, (0, 2): 0}
FIGURES = {
    "blocks": lambda: blocks(HELD, title="Who", notes={"file": "nothing here"}, caption="Held."),
    "shares": lambda: shares(PARTS, SHARES, title="Whose"),
    "lanes": lambda: lanes(WORK, unit="ms", title="When"),
    "traffic": lambda: traffic(SENT, ranks_per_node=2, ranks=4, title="Whom"),
}


def svg_of(figure):
    return ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())


def named(figure, tag, name):
    return [e for e in svg_of(figure).iter(SVG + tag) if e.get("class") == name]


@pytest.mark.parametrize("name", FIGURES)
def test_it_takes_the_page_s_colour_says_what_it_shows_and_is_the_same_each_time(name):
    figure = FIGURES[name]()
    svg = svg_of(figure)
    assert svg.get("role") == "img"
    assert svg.get("aria-label") == figure.alt
    assert figure.html == FIGURES[name]().html
    for text in svg.iter(f"{SVG}text"):
        assert (text.get("fill") is not None) == (text.get("class") == "chunk"), text.text


def test_blocks_are_as_wide_as_they_are_large_and_rows_below_each_other():
    figure = FIGURES["blocks"]()
    widths = [float(block.get("width")) for block in named(figure, "rect", "block")]
    assert widths == pytest.approx([400 * 2 / 12, 400 / 12, 400], abs=0.1)
    assert [text.text for text in named(figure, "text", "holder")] == ["device", "host", "file"]
    assert [text.text for text in named(figure, "text", "note")] == ["parameters", "nothing here"]  # it is too wide
    half = blocks(HELD, title="Who", largest=24)
    assert [float(block.get("width")) for block in named(half, "rect", "block")][2] == pytest.approx(200)


def test_shares_are_filled_where_the_holder_has_them_and_outlined_where_not():
    figure = FIGURES["shares"]()
    wholes = [float(whole.get("width")) for whole in named(figure, "rect", "whole")]
    assert wholes == [36, 216, 36, 216]  # two holders, two parts; the others are dots
    filled = [(float(share.get("x")), float(share.get("width"))) for share in named(figure, "rect", "share")]
    left = float(named(figure, "rect", "whole")[1].get("x"))
    assert [width for _, width in filled] == [36, 54, 54]
    assert filled[1:] == [(left, 54), (left + 162, 54)]
    assert (
        "rank 0: parameters whole, 0.25 of states; …: as the others; rank 3: no parameters, 0.25 of states"
        in figure.alt
    )
    assert [text.text for text in named(figure, "text", "part")] == list(PARTS)


def test_lanes_have_a_bar_for_each_work_where_it_is():
    figure = FIGURES["lanes"]()
    bars = named(figure, "rect", "work")
    starts = [float(bar.get("x")) for bar in bars]
    per_ms = (starts[1] - starts[0]) / 1
    assert [(start - starts[0]) / per_ms for start in starts] == pytest.approx([0, 1, 1, 3], abs=0.01)
    assert [float(bar.get("width")) / per_ms for bar in bars] == pytest.approx([1, 1, 2, 2], abs=0.01)
    assert len({bar.get("y") for bar in bars}) == 2
    on_wider_scale = named(lanes(WORK, unit="ms", title="When", span=10), "rect", "work")
    assert float(on_wider_scale[0].get("width")) == pytest.approx(float(bars[0].get("width")) / 2, abs=0.1)


def test_traffic_has_an_arrow_for_each_pair_and_tells_nodes_apart():
    figure = FIGURES["traffic"]()
    across, inside = named(figure, "g", "across"), named(figure, "g", "inside")
    assert (len(across), len(inside)) == (2, 2)
    assert {line.get("stroke") for g in across for line in g.iter(f"{SVG}line")}.isdisjoint(
        {line.get("stroke") for g in inside for line in g.iter(f"{SVG}line")}
    )
    assert sorted(text.text for text in named(figure, "text", "bytes")) == ["100", "100", "400", "400"]
    assert "Between nodes 800, inside them 200" in figure.alt


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: blocks({}, title="x"), "there are no blocks"),
        (lambda: blocks({"a": []}, title="x"), "there are no blocks"),
        (lambda: shares(PARTS, {"a": {"states": (0, 1), "moods": (0, 1)}}, title="x"), "no part is called 'moods'"),
        (lambda: shares(PARTS, {}, title="x"), "nothing to draw"),
        (lambda: lanes({"a": []}, unit="s", title="x"), "lanes are empty"),
        (lambda: lanes({"a": [("b", 2, 1, 0)]}, unit="s", title="x"), "starts at 2 and ends at 1"),
        (lambda: traffic({}, ranks_per_node=3, ranks=4, title="x"), "whole nodes of 3"),
        (lambda: traffic({(0, 4): 1}, ranks_per_node=2, ranks=4, title="x"), "not a pair of ranks 0 to 3"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()
