"""The figure of chapter 1, and the words beside points in that of chapter 0."""

import re
import xml.etree.ElementTree as ET

from ringzero.costs.page.transformer import gpt_params
from ringzero_course.figures import chart
from ringzero_course.figures.transformer import STEPS, transformer

SVG = "{http://www.w3.org/2000/svg}"


def drawing(figure):
    return ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())


def value(formula, **letters):
    """Of a count as the figure writes it, such as "3h² + 3h"."""
    written = re.sub(r"(\d)(?=[h(])|(\))(?=h)", r"\1\2*", formula.replace("²", "**2"))
    return eval(written, letters)


def test_the_parameters_in_the_figure_are_those_of_the_formula():
    v, p, h, layers = 50257, 1024, 768, 12
    counted = 0
    for _, _, count, part in STEPS:
        if count and "embedding" not in count:
            counted += value(count, v=v, p=p, h=h) * (layers if part else 1)
    assert counted == gpt_params(layers, h, v, p)


def test_every_step_is_drawn_with_its_name_and_its_shape():
    figure = drawing(transformer(caption="c"))
    words = [text.text for text in figure.iter(f"{SVG}text")]
    for name, shape, count, _ in STEPS:
        assert {name, shape, count} - {""} <= set(words)
    steps = [box for box in figure.iter(f"{SVG}rect") if box.get("class") == "step"]
    assert len(steps) == len(STEPS)
    (layer,) = [box for box in figure.iter(f"{SVG}rect") if box.get("class") == "layer"]
    above, below = (float(layer.get("y")) + side for side in (0, float(layer.get("height"))))
    inside = [above < float(box.get("y")) < below for box in steps]
    assert inside == [part != "" for *_, part in STEPS]


def test_words_beside_a_point_stay_inside_the_drawing():
    points = {"models": ([2018, 2024], [1e20, 1e25])}
    options = {"x": "year", "y": "FLOP", "title": "t", "log": "y"}
    figure = drawing(chart(points, labels={"models": ["early", "a long name at the end"]}, **options))
    texts = {text.text: text for text in figure.iter(f"{SVG}text")}
    assert "models" not in texts  # the names of its points are enough
    early, late = texts["early"], texts["a long name at the end"]
    assert (early.get("text-anchor"), late.get("text-anchor")) == (None, "end")
    assert float(early.get("x")) < float(late.get("x"))
