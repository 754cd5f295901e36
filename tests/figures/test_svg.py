"""What all figures are made of: an arrow ends where it should, words are escaped, numbers on an axis are round."""

import re
from xml.etree import ElementTree

import pytest

from ringzero.drawing import axes, palette, svg


def numbers(text):
    return [float(number) for number in re.findall(r"-?[\d.]+", text)]


def heads(arrow):
    """The three corners of each head, the tip first."""
    corners = [numbers(polygon.get("points")) for polygon in ElementTree.fromstring(arrow).iter("polygon")]
    return [list(zip(each[::2], each[1::2], strict=True)) for each in corners]


@pytest.mark.parametrize(("count", "tips"), [(0, []), (1, [(90, 50)]), (2, [(90, 50), (10, 50)])])
def test_an_arrow_has_its_heads_where_it_ends(count, tips):
    arrow = svg.arrow((10, 50), (90, 50), heads=count)
    assert [head[0] for head in heads(arrow)] == tips
    x1, _, _, _, x2, _ = numbers(ElementTree.fromstring(arrow).find("path").get("d"))
    assert (x1, x2) == (10 + svg.HEAD * (count == 2), 90 - svg.HEAD * (count > 0))  # the line ends below its head


def test_a_head_points_where_a_bent_arrow_comes_from_and_grows_with_its_line():
    ((tip, *corners),) = heads(svg.arrow((0, 0), (100, 100), control=(100, 0)))
    assert tip == (100, 100)
    assert {y for _, y in corners} == {100 - svg.HEAD}, "it comes from straight above"
    thin, thick = (abs(head[1][0] - head[2][0]) for width in (1, 7)
                   for head in heads(svg.arrow((0, 0), (0, 100), width=width)))  # fmt: skip
    assert thick == pytest.approx(thin + 6)


def test_words_are_escaped_and_read_well_on_a_colour():
    label = svg.box(0, 0, 100, 20, palette.BLUE, "a < b", 'says "c"')
    box, words = ElementTree.fromstring(f"<g>{label}</g>")
    assert (words.text, words.get("fill"), words.get("class")) == ("a < b", palette.WHITE, "chunk")
    assert box.find("title").text == 'says "c"'
    assert "<text" not in svg.box(0, 0, 20, 20, palette.BLUE, "a < b"), "there is no room for it"


def test_an_image_says_what_it_shows_once():
    image = ElementTree.fromstring(svg.image(300, 20, "It fits.", "a & b", ["<g/>"], text=11))
    assert image.get("aria-label") == "It fits. a & b"
    assert "max-width:300px;min-width:273px" in image.get("style")  # letters of 11 pixels shrink to 10


@pytest.mark.parametrize(("low", "high"), [(0, 1e-5), (0, 7), (-3, 40), (0.93, 1.07), (1999, 2001)])
def test_ticks_are_a_handful_of_round_numbers_inside(low, high):
    found = axes.ticks(low, high)
    assert 3 <= len(found) <= 7
    assert low <= found[0] < found[-1] <= high
    step = found[1] - found[0]
    assert f"{step:.3e}"[:5] in ("1.000", "2.000", "5.000")


def test_a_scale_is_straight_or_logarithmic():
    assert [axes.Scale(0, 10, 100, 0)(value) for value in (0, 5, 10)] == [100, 50, 0]
    assert axes.Scale(1, 100, 0, 50, log=True)(10) == pytest.approx(25)
    wide = axes.around([2.0, 2.0], 0, 50)
    assert wide(2.0) == pytest.approx(25), "a single value lies in the middle"


def test_names_lie_apart_and_inside():
    assert axes.apart([10, 12, 90], lowest=80) == [10, 25, 80]
    assert axes.apart([78, 79, 80], lowest=80) == [50, 65, 80]
