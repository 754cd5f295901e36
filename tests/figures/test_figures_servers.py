"""The figure of chapter 7: servers above workers, an arrow for each pair that crosses the network."""

import re
import xml.etree.ElementTree as ET

import pytest

from ringzero_course.figures.servers import servers

SVG = "{http://www.w3.org/2000/svg}"
SERVE, WORK = {0: ["half", "in 2"], 1: ["half", "in 2"]}, {0: [], 1: ["sends 1"], 2: ["sends 2"]}


def parts(figure, tag, name):
    svg = ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())
    return [element for element in svg.iter(SVG + tag) if element.get("class") == name]


def test_arrows_join_other_ranks_and_dashes_the_two_boxes_of_one():
    figure = servers(SERVE, WORK, title="Who")
    assert len(parts(figure, "g", "both ways")) == 4  # of 2 servers with 3 workers, two pairs are one rank each
    assert all(len(list(arrow.iter(f"{SVG}polygon"))) == 2 for arrow in parts(figure, "g", "both ways"))
    dashes = parts(figure, "line", "inside")
    assert len(dashes) == 2
    assert all(line.get("x1") == line.get("x2") for line in dashes)


def test_each_rank_stands_in_its_column_and_servers_above():
    boxes = parts(servers(SERVE, WORK, title="Who"), "rect", "rank")
    places = [(float(box.get("x")), float(box.get("y"))) for box in boxes]
    (x0, top), (x1, _), *workers = places
    assert [x for x, _ in workers] == [x0, x1, 2 * x1 - x0]
    assert {y for _, y in places[:2]} == {top}
    assert all(y > top for _, y in workers)


def test_it_says_what_it_shows_in_the_page_s_colour():
    figure = servers(SERVE, WORK, title="Who", caption="These.")
    assert "rank 1 serves: half, in 2" in figure.alt
    assert "rank 2 trains: sends 2" in figure.alt
    for text in re.findall(r"<text[^>]*>", figure.html):
        assert ("fill=" in text) == ('class="chunk"' in text), text
    assert figure.html == servers(SERVE, WORK, title="Who", caption="These.").html


@pytest.mark.parametrize("rows", [({}, {0: []}), ({0: []}, {})])
def test_nobody_who_serves_or_works_is_refused(rows):
    with pytest.raises(ValueError, match="at least one each"):
        servers(*rows, title="Who")
