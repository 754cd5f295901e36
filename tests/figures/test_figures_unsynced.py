"""The figure of chapter 8: ranks as circles, lines and arrows between those that send their models."""

import re
import xml.etree.ElementTree as ET
from math import hypot

import pytest

from ringzero.unsynced import graphs
from ringzero_course.figures.graphs import graph

SVG = "{http://www.w3.org/2000/svg}"


def svg_of(figure):
    return ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())


def parts(figure, tag, name):
    return [element for element in svg_of(figure).iter(SVG + tag) if element.get("class") == name]


def drawn(made, **options):
    return graph(made.weights(0).tolist(), title=str(made), **options)


def arrows(figure, name):
    """How many of the edges of a class have a head."""
    return sum(len(list(edge.iter(f"{SVG}polygon"))) for edge in parts(figure, "g", name))


@pytest.mark.parametrize(
    ("made", "edges", "into", "heads"),
    [
        (graphs.ring(6), 4, 2, (0, 0)),  # lines of two ranks are drawn once
        (graphs.torus(2, 4), 9, 3, (0, 0)),
        (graphs.one_peer_exponential(8), 7, 1, (7, 1)),
        (graphs.exponential(8), 17, 3, (14, 2)),  # 4 places on is 4 places back: a line
        (graphs.ring(1), 0, 0, (0, 0)),
    ],
)
def test_a_line_for_two_that_exchange_and_an_arrow_for_one_that_sends(made, edges, into, heads):
    figure = drawn(made)
    assert (len(parts(figure, "g", "edge")), len(parts(figure, "g", "into"))) == (edges, into)
    assert (arrows(figure, "edge"), arrows(figure, "into")) == heads
    assert len(parts(figure, "circle", "rank")) == made.world_size


def test_an_arrow_points_at_the_rank_that_receives():
    figure = drawn(graphs.one_peer_exponential(4))  # rank 3 sends to rank 0
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in parts(figure, "circle", "rank")]
    (arrow,) = parts(figure, "g", "into")
    tip = next(arrow.iter(f"{SVG}polygon")).get("points").split()[0]
    x, y = map(float, tip.split(","))
    distances = [hypot(x - cx, y - cy) for cx, cy in circles]
    assert distances.index(min(distances)) == 0


def test_the_weights_of_a_rank_and_what_it_takes():
    figure = graph([[0.5, 0.3, 0.2], [0.5, 0.5, 0], [0, 0, 1]], title="Mine")
    assert sorted(text.text for text in parts(figure, "text", "weight")) == ["0.3", "1/5"]
    assert [text.text for text in parts(figure, "text", "sum")] == ["rank 0 takes 1/2 own + 0.3 of 1 + 1/5 of 2"]
    other = graph([[0.5, 0.3, 0.2], [0.5, 0.5, 0], [0, 0, 1]], title="Mine", rank=1)
    assert [text.text for text in parts(other, "text", "weight")] == ["1/2"]
    nobody = graph([[0.5, 0.3, 0.2], [0.5, 0.5, 0], [0, 0, 1]], title="Mine", rank=None)
    assert parts(nobody, "text", "weight") == parts(nobody, "g", "into") == []


def test_lines_of_a_grid_run_past_the_ranks_between_their_ends():
    figure = drawn(graphs.torus(3, 4), columns=4)
    circles = [(float(c.get("cx")), float(c.get("cy"))) for c in parts(figure, "circle", "rank")]
    rows = sorted({y for _, y in circles})
    assert [sum(cy == y for _, cy in circles) for y in rows] == [4, 4, 4]
    edges = [*parts(figure, "g", "edge"), *parts(figure, "g", "into")]
    assert len(edges) == 24
    for edge in edges:
        path = next(edge.iter(f"{SVG}path")).get("d")
        x0, y0, cx, cy, x1, y1 = map(float, re.findall(r"-?[\d.]+", path))
        curve = [
            (
                (1 - t) ** 2 * x0 + 2 * t * (1 - t) * cx + t * t * x1,
                (1 - t) ** 2 * y0 + 2 * t * (1 - t) * cy + t * t * y1,
            )
            for t in (k / 20 for k in range(21))
        ]
        ends = {
            min(range(12), key=lambda i: hypot(circles[i][0] - x, circles[i][1] - y)) for x, y in (curve[0], curve[-1])
        }
        assert len(ends) == 2
        for number, (px, py) in enumerate(circles):
            if number not in ends:
                assert min(hypot(px - x, py - y) for x, y in curve) > 15, (ends, number)


def test_it_says_what_it_shows_in_the_page_s_colour():
    figure = drawn(graphs.one_peer_exponential(4), caption="These.")
    assert "rank 3 sends to 0" in figure.alt
    assert "rank 0 takes 1/2 own + 1/2 of 3" in figure.alt
    assert "These." in figure.html
    assert svg_of(figure).get("role") == "img"
    assert svg_of(figure).get("aria-label") == figure.alt
    for text in svg_of(figure).iter(f"{SVG}text"):
        assert (text.get("fill") is not None) == (text.get("class") == "chunk"), text.text
    assert figure.html == drawn(graphs.one_peer_exponential(4), caption="These.").html


@pytest.mark.parametrize(
    ("weights", "rank", "message"),
    [
        ([[1.0, 0.0]], 0, r"weights have 1 rows of \[2\] numbers"),
        ([], 0, "weights have 0 rows"),
        ([[1.0]], 1, "rank is 1; give one of 0 to 0, or None"),
    ],
)
def test_what_cannot_be_drawn_is_refused(weights, rank, message):
    with pytest.raises(ValueError, match=message):
        graph(weights, title="x", rank=rank)
