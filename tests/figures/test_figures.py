"""Figures: what is drawn is what the schedule says, in colours that can be read, and the same bytes every time."""

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise, product
from pathlib import Path

import pytest

from ringzero.collectives.flat import flat_all_reduce
from ringzero.collectives.ring import ring_all_reduce, ring_broadcast, ring_reduce_scatter
from ringzero.collectives.schedule import Round, Schedule
from ringzero.drawing import palette
from ringzero.record.operation import COMPUTE, Operation
from ringzero_course.figures import (
    Figure,
    before_after,
    chart,
    explore,
    queues,
    spacetime,
    standalone,
    table,
    timeline,
)

README_PICTURE = Path(__file__).parents[2] / "book" / "ring.svg"
SVG = "{http://www.w3.org/2000/svg}"
SCHEDULES = [
    ring_all_reduce(1),
    ring_all_reduce(2),
    ring_all_reduce(5),
    ring_all_reduce(16),
    ring_broadcast(5, root=2, chunks=4),
    flat_all_reduce(4),
    # Two chunks reach rank 0 in one round, as from two children of a tree.
    Schedule("reduce", "two at once", 3, 2, (Round(src=[1, 2, 1, 2], dst=0, chunk=[0, 0, 1, 1], reduce=True),), 0),
]


def svg_of(figure):
    return ET.fromstring(re.search(r"<svg.*?</svg>", figure.html, re.DOTALL).group())


def drawn_transfers(svg):
    """(round, src, dst, chunk, reduce) of every transfer, read off the picture: where lines begin, boxes stand."""
    lanes = {float(text.get("y")) - 4: int(text.text.split()[1]) for text in svg.iter(f"{SVG}text")
             if text.get("class") == "rank"}  # fmt: skip
    found = []
    rounds = [g for g in svg.iter(f"{SVG}g") if g.get("class") == "round"]
    for number, group in enumerate(rounds):
        lines = {}
        for line in group.iter(f"{SVG}line"):
            end = (float(line.get("x2")), float(line.get("y2")))
            assert end not in lines, "two lines end in one place"
            lines[end] = lanes[float(line.get("y1"))]
        rects, labels = list(group.iter(f"{SVG}rect")), list(group.iter(f"{SVG}text"))
        assert len(rects) == len(labels) == len(lines)
        for rect, label in zip(rects, labels, strict=True):
            x, middle = float(rect.get("x")), float(rect.get("y")) + float(rect.get("height")) / 2
            inside = 0 < float(label.get("x")) - x < float(rect.get("width"))
            assert inside, "a label beside its box"
            reduce = label.text.startswith("+")
            assert reduce == (rect.get("rx") is None), "shape and sign disagree"
            found.append((number, lines[x - 1, middle], lanes[middle], int(label.text.lstrip("+")), reduce))
    return found


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_spacetime_draws_each_transfer_once(schedule):
    expected = Counter((number, *transfer) for number, round in enumerate(schedule.rounds) for transfer in round)
    assert Counter(drawn_transfers(svg_of(spacetime(schedule)))) == expected


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_spacetime_boxes_do_not_touch(schedule):
    svg = svg_of(spacetime(schedule))
    boxes = [[float(r.get(k)) for k in ("x", "y", "width", "height")] for r in svg.iter(f"{SVG}rect")]
    assert len({(x, y) for x, y, _, _ in boxes}) == len(boxes)
    for x, y, w, h in boxes:
        for x2, y2, _, _ in boxes:
            assert (x, y) == (x2, y2) or abs(x - x2) >= w or abs(y - y2) >= h
    width, height = map(float, svg.get("viewBox").split()[2:])
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)


def test_spacetime_upto_fades_what_has_not_happened():
    svg = svg_of(spacetime(ring_all_reduce(3), upto=1))
    faded = [g.get("opacity") is not None for g in svg.iter(f"{SVG}g") if g.get("class") == "round"]
    assert faded == [False, True, True, True]


def drawings():
    points = {"measured": ([1, 10, 100], [3.0, 5.0, 40.0]), "predicted": ([1, 10, 100], [2.9, 5.2, 41.0])}
    return {
        "spacetime": spacetime(ring_all_reduce(4), caption="A < B & C"),
        "chart": chart(points, x="size (B)", y="time (s)", title="t & u", log="xy", styles={"measured": "points"}),
    }


@pytest.mark.parametrize("kind", ["spacetime", "chart"])
def test_a_drawing_takes_the_page_s_colour_and_says_what_it_shows(kind):
    figure = drawings()[kind]
    assert "<img" not in figure._repr_html_()
    svg = svg_of(figure)
    assert svg.get("role") == "img"
    assert len(svg.get("aria-label")) > 20
    assert svg.find(f"{SVG}title").text
    assert svg.find(f"{SVG}desc").text
    assert "width:100%" in svg.get("style")
    used = set(re.findall(r"#[0-9a-fA-F]{6}\b", ET.tostring(svg, encoding="unicode")))
    ours = {"spacetime": {*palette.FILLS, palette.BLACK, palette.WHITE}, "chart": set(palette.LINES)}[kind]
    assert {color.lower() for color in used} <= ours
    wide = [e for e in svg.iter(f"{SVG}rect") if float(e.get("width")) > 100]
    assert not wide, "the page shows through"
    for text in svg.iter(f"{SVG}text"):
        if text.get("class") != "chunk":
            assert "#" not in (text.get("fill") or "") + (text.get("style") or ""), text.text


@pytest.mark.parametrize("kind", ["spacetime", "chart"])
def test_the_same_drawing_twice_is_the_same_bytes(kind):
    assert drawings()[kind].html == drawings()[kind].html


def places_of(figure):
    """Where the marks of a chart are."""
    return [tuple(map(float, at)) for at in re.findall(r"<path d=\"M([\d.]+) ([\d.]+)m", figure.html)]


@pytest.mark.parametrize("log", ["", "x", "y", "xy"])
def test_a_chart_is_to_scale(log):
    """Of three points the middle one lies in the middle, by the logarithm on a logarithmic axis."""
    xs, ys = [1, 10 if "x" in log else 50.5, 100], [2, 20 if "y" in log else 101, 200]
    figure = chart({"a": (xs, ys)}, x="x", y="y", title="t", log=log, styles={"a": "points"})
    (x1, y1), (x2, y2), (x3, y3) = places_of(figure)[:3]
    assert x1 < x2 < x3
    assert y1 > y2 > y3
    assert (x2, y2) == (pytest.approx((x1 + x3) / 2, abs=0.02), pytest.approx((y1 + y3) / 2, abs=0.02))


def test_words_stand_at_the_places_of_their_axis_only():
    figure = chart({"a": ([0, 1, 2], [1, 2, 3])}, x="x", y="y", title="t", ticks={0: "zero", 2: "two"})
    texts = [text.text for text in svg_of(figure).iter(f"{SVG}text")]
    assert (texts.count("zero"), texts.count("two"), texts.count("2")) == (1, 1, 1)


def test_a_chart_leaves_out_what_its_axes_cannot_show():
    points = {"a": ([0, 1, 2, 4], [1.0, float("nan"), 3.0, 4.0])}
    figure = chart(points, x="x", y="y", title="t", log="x", styles={"a": "points"})
    assert len(places_of(figure)) == 3  # two points, and the sample beside the name
    diverged = chart({"a": ([0, 1], [float("nan")] * 2)}, x="x", y="y", title="t")
    assert "nothing to draw" in diverged.html


def test_a_narrow_logarithmic_axis_has_numbers():
    figure = chart({"loss": ([1, 2, 3], [1.9, 1.4, 1.2])}, x="x", y="y", title="t", log="y")
    assert {"1.4", "1.6", "1.8"} <= {text.text for text in svg_of(figure).iter(f"{SVG}text")}


def test_a_word_of_an_axis_beyond_the_data_is_inside_the_plot():
    figure = chart({"a": ([1, 30], [1, 2])}, x="x", y="y", title="t", log="x", ticks={1: "1", 1024: "1,024"})
    (x,) = [float(text.get("x")) for text in svg_of(figure).iter(f"{SVG}text") if text.text == "1,024"]
    (name,) = [float(text.get("x")) for text in svg_of(figure).iter(f"{SVG}text") if text.text == "a"]
    assert x < name


def test_numbers_on_an_axis_do_not_touch():
    figure = chart({"a": ([1e3, 1e6], [1, 2])}, x="x", y="y", title="t", log="x")
    axis = max(float(text.get("y")) for text in svg_of(figure).iter(f"{SVG}text") if text.text == "1,000")
    texts = [(float(t.get("x")), len(t.text)) for t in svg_of(figure).iter(f"{SVG}text") if float(t.get("y")) == axis]
    for (x, long), (other, longer) in pairwise(sorted(texts)):
        assert other - x > 6 * (long + longer) / 2
    assert {"1,000", "10,000", "100,000", "1,000,000"} <= {t.text for t in svg_of(figure).iter(f"{SVG}text")}


def test_chart_keeps_text_as_text_and_names_its_lines():
    texts = {text.text.strip() for text in svg_of(drawings()["chart"]).iter(f"{SVG}text") if text.text}
    assert {"measured", "predicted", "size (B)", "time (s)"} <= texts


def test_chart_names_its_lines_for_a_telephone_too():
    two = {"measured": ([1, 2], [3, 4]), "<ring>": ([1, 2], [3, 5])}
    legend = chart(two, x="x", y="y", title="t", styles={"measured": "points"}).html.partition("rz-legend")[2]
    assert re.findall(r"</svg> ([^<]*)</span>", legend) == ["measured", "&lt;ring&gt;"]
    assert [sample.count("stroke=") for sample in legend.split("<span>")[1:]] == [0, 1]
    alone = chart({"ring": two["measured"]}, x="x", y="y", title="t")
    assert "rz-legend" not in alone.html


def test_lines_that_meet_at_their_ends_are_named_where_they_begin():
    lines = {"ring": ([1, 100], [9, 10]), "tree": ([1, 100], [1, 10])}
    drawn = svg_of(chart(lines, x="x", y="y", title="t", named_at="start"))
    names = {text.text: text for text in drawn.iter(f"{SVG}text") if text.get("class") == "name"}
    assert list(names) == ["ring", "tree"]
    assert float(names["ring"].get("y")) < float(names["tree"].get("y")) - 15


def test_chart_rejects_a_style_for_no_series():
    with pytest.raises(ValueError, match="typo"):
        chart({"a": ([1], [1])}, x="x", y="y", title="t", styles={"typo": "points"})


def test_palette_can_be_read():
    assert round(palette.contrast(palette.BLACK, palette.WHITE)) == 21
    assert len(set(palette.FILLS)) == len(palette.FILLS)
    for color in palette.FILLS:
        assert palette.contrast(palette.ink(color), color) >= 4.5, color
    for color, page in product(palette.LINES, ("#ffffff", "#121212")):  # sphinx-book-theme's two backgrounds
        assert palette.contrast(color, page) >= 3, (color, page)
    assert set(palette.LINES) <= set(palette.FILLS)


def grid_of(figure):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', figure.html, re.DOTALL).group(1))


def test_explore_holds_every_state_in_order():
    calls = []

    def draw(ranks, algorithm):
        calls.append((ranks, algorithm))
        return table([("ranks", ranks)]), [("algorithm", f"{algorithm} </script> & <b>")]

    figure = explore(
        draw, {"ranks": [2, 4, 8], "algorithm": ["ring", "flat"]}, default={"ranks": 4, "algorithm": "flat"}
    )
    grid = grid_of(figure)
    assert calls == list(product([2, 4, 8], ["ring", "flat"]))
    assert grid["sizes"] == [3, 2]
    assert grid["values"] == [["2", "4", "8"], ["ring", "flat"]]
    for (ranks, algorithm), state in zip(calls, grid["states"], strict=True):
        assert f"<td>{ranks}</td>" in state["html"]
        assert f"ranks {ranks}, algorithm {algorithm};" in state["says"]
    shown = re.search(r'<div class="rz-view">(.*?)</div><p class="rz-status"', figure.html, re.DOTALL).group(1)
    assert shown == grid["states"][3]["html"], "the default state is on the page before any script runs"
    assert figure.html.count("</script>") == 1
    assert "<b>" not in figure.html


def test_explore_uses_native_labelled_inputs_hidden_until_the_script_runs():
    html = explore(lambda n, how: table([(n, how)]), {"n": [1, 2], "how": ["a", "b"]}, labels={"n": "ranks N"}).html
    assert re.search(r'<label>ranks N <input type="range" min="0" max="1" step="1" value="0"', html)
    assert re.search(r'<label>how <select><option value="0" selected>a</option>', html)
    assert '<div class="rz-controls" hidden>' in html
    assert 'aria-live="polite"' in html


def test_explore_rejects_a_default_that_is_not_a_state():
    with pytest.raises(ValueError, match="3"):
        explore(lambda n: table([(n,)]), {"n": [1, 2]}, default={"n": 3})
    with pytest.raises(ValueError, match="m"):
        explore(lambda n: table([(n,)]), {"n": [1, 2]}, default={"m": 1})


def test_a_slider_that_plays_has_a_button_behind_it():
    draw = {"fn": lambda n, how: table([(n, how)]), "controls": {"n": [1, 2], "how": ["a", "b"]}}
    assert re.search(
        r'<output>1</output></label><button type="button" class="rz-play">Play', explore(**draw, plays="n").html
    )
    assert "rz-play" not in explore(**draw).html
    with pytest.raises(ValueError, match="plays is 'how'; it is one of the sliders n"):
        explore(**draw, plays="how")


def test_before_after_marks_what_changed():
    html = before_after([[1.0, 2.0], [3 + 1j], None], [[1.0, 2.0], [4 - 1j], [[1], [2]]], caption="<c>").html
    body = ET.fromstring(re.search(r"<table.*</table>", html).group().replace("<br>", "<br/>"))
    rows = [["".join(cell.itertext()) for cell in row] for row in body.iter("tr")]
    assert rows[1:] == [["0", "1 2", "1 2"], ["1", "3+1i", "4-1i"], ["2", "nothing", "12"]]
    assert [row.find(".//strong") is not None for row in body.find("tbody")] == [False, True, True]
    assert "&lt;c&gt;" in html


def test_a_figure_shows_words_where_html_does_not():
    figure = spacetime(ring_reduce_scatter(3))
    assert isinstance(figure, Figure)
    assert "reduce-scatter, ring, 3 ranks. 2 rounds, 6 transfers" in repr(figure)


ALL_REDUCE = Operation(
    kind="all_reduce", rank=0, start=0.0, bytes=16, dtype="float32", line="cell 1 line 2", group="0", members=(0, 1)
)
KINDS = ("rank", "chunk")  # texts beside a lane, texts on a bar
TRACE = [
    ALL_REDUCE._replace(rank=0, start=10.0, wait=10.001, end=10.004),
    ALL_REDUCE._replace(rank=1, start=10.002, wait=10.002, end=10.004),
    ALL_REDUCE._replace(rank=1, start=10.0045, wait=None, end=None, kind="send", peer=0),
    ALL_REDUCE._replace(rank=1, start=10.0046, wait=10.0046, end=10.005, kind="header", peer=0),
]


def bars_of(figure):
    """``(title, (x, width) of its pale part, of its solid part or None)`` of each operation, lane by lane."""
    root = svg_of(figure)
    pale = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "under-way"]
    groups = [g for g in root.iter(f"{SVG}g") if g.get("class") == "operation"]

    def place(rect):
        return None if rect is None else (float(rect.get("x")), float(rect.get("width")))

    titles = [g.find(f"{SVG}title").text for g in groups]
    assert titles == [r.find(f"{SVG}title").text for r in pale]
    solid = [next((r for r in g.iter(f"{SVG}rect") if r.get("class") == "waiting"), None) for g in groups]
    return list(zip(titles, map(place, pale), map(place, solid), strict=True))


def test_timeline_draws_every_operation_where_it_was():
    figure = timeline(TRACE)
    assert len(bars_of(figure)) == 3, "headers are left out"
    (title, pale, solid), (_, _, other), (never, _, nothing) = bars_of(figure)
    assert solid[1] == pytest.approx(3 * pale[1], rel=0.01), "1 ms on its way, then 3 ms of waiting"
    assert pale[0] + pale[1] == pytest.approx(solid[0], abs=0.2)
    assert sum(solid) == pytest.approx(sum(other), abs=0.2), "both ranks were done together"
    assert title == "all_reduce, 16 bytes, cell 1 line 2: 4 ms"
    assert never == "send to 0, 16 bytes, cell 1 line 2: never waited for"
    assert nothing is None
    texts = {kind: [t.text for t in svg_of(figure).iter(f"{SVG}text") if t.get("class") == kind] for kind in KINDS}
    assert texts == {"rank": ["rank 0", "rank 1"], "chunk": ["all_reduce"] * 2}


def computed(kind, start, end, **fields):
    return Operation(kind, rank=0, start=start, end=end, stream=COMPUTE, line="cell 1 line 1", **fields)


STEP = [  # the backward pass stops for an all-reduce, 3 ms
    computed("forward", 0.0, 0.002),
    computed("backward", 0.002, 0.009),
    ALL_REDUCE._replace(start=0.004, wait=0.005, end=0.008),
    computed("optimizer", 0.009, 0.0105),
]


def computing_of(figure):
    """``{name: [(x, width) of each piece in which the rank computes]}``."""
    groups = [g for g in svg_of(figure).iter(f"{SVG}g") if g.get("class") == "computing"]
    return {
        g.find(f"{SVG}title").text.split(",")[0]: [
            (float(r.get("x")), float(r.get("width"))) for r in g.iter(f"{SVG}rect") if r.get("class") == "busy"
        ]
        for g in groups
    }


def test_timeline_draws_what_a_rank_computes_above_what_it_communicates():
    figure = timeline(STEP)
    computing, ((_, pale, solid),) = computing_of(figure), bars_of(figure)
    assert list(computing) == ["forward", "backward", "optimizer"]
    assert [len(pieces) for pieces in computing.values()] == [1, 2, 1], "while it waits it does not compute"
    (before, after), (wait, waits) = computing["backward"], solid
    assert before[0] + before[1] == pytest.approx(wait, abs=0.2)
    assert after[0] == pytest.approx(wait + waits, abs=0.2)
    assert pale[0] < wait, "the message leaves while the rank still computes"
    heights = {r.get("class"): float(r.get("y")) for r in svg_of(figure).iter(f"{SVG}rect")}
    assert heights["busy"] < heights["waiting"]
    labels = [t.text for t in svg_of(figure).iter(f"{SVG}text") if t.get("class") == "chunk"]
    assert sorted(labels) == ["all_reduce", "backward", "forward", "optimizer"]


def test_a_wait_of_another_thread_does_not_stop_what_this_one_computes():
    trace = [computed("backward", 0.0, 1.0), ALL_REDUCE._replace(start=0.1, wait=0.2, end=0.9, thread=1)]
    assert len(computing_of(timeline(trace))["backward"]) == 1


def test_a_prediction_stands_beside_what_was_measured_on_one_scale():
    measured = [op._replace(start=op.start + 7, wait=op.wait and op.wait + 7, end=op.end + 7) for op in STEP]
    predicted = [op._replace(line="", start=op.start * 2, wait=op.wait and op.wait * 2, end=op.end * 2) for op in STEP]
    figure = timeline([*measured, measured[0]._replace(rank=1)], beside=predicted)
    texts = [t.text for t in svg_of(figure).iter(f"{SVG}text") if t.get("class") == "rank"]
    assert texts == ["rank 0", "rank 0", "predicted", "rank 1"]
    (_, _, real), (title, _, foreseen) = bars_of(figure)
    assert foreseen[1] == pytest.approx(2 * real[1], rel=0.01)
    left = computing_of(timeline(STEP))["forward"][0][0]
    assert foreseen[0] - left == pytest.approx(2 * (real[0] - left), rel=0.01), "both begin at the left"
    assert title == "all_reduce, 16 bytes: 8 ms", "no line: nobody wrote it"
    assert "beside 4 predicted" in figure.alt


def test_what_begins_and_ends_at_zero_is_drawn():
    ((_, _, (left, width)),) = bars_of(timeline([ALL_REDUCE._replace(start=0.0, wait=0.0, end=0.0)], span=1.0))
    assert width == 0.5, "as narrow as a bar can be"
    assert left == bars_of(timeline([ALL_REDUCE._replace(start=0.0, wait=0.0, end=1.0)]))[0][2][0]


def test_timelines_of_one_span_have_one_scale():
    long = [ALL_REDUCE._replace(rank=0, start=5.0, wait=5.0, end=5.4)]
    short = [ALL_REDUCE._replace(rank=0, start=8.1, wait=8.1, end=8.2)]
    (_, _, (_, whole)), (_, _, (later, quarter)) = (
        *bars_of(timeline(long, begin=5.0, span=0.8)),
        *bars_of(timeline(short, begin=8.0, span=0.8)),
    )
    assert whole == pytest.approx(4 * quarter, rel=0.01)
    assert later - bars_of(timeline(long, span=0.8))[0][1][0] == pytest.approx(quarter, rel=0.01), "0.1 s after begin"


def test_timeline_of_a_part_ends_at_its_edges():
    trace = [ALL_REDUCE._replace(rank=r, start=1.0 + r, wait=1.5 + r, end=2.0 + r) for r in range(4)]
    figure = timeline(trace, begin=2.25, span=1.0)
    bars = bars_of(figure)
    everything = bars_of(timeline([ALL_REDUCE._replace(rank=0, start=2.25, wait=2.25, end=3.25)]))
    left, width = everything[0][2]
    assert len(bars) == 2, "rank 1 until 3.0, rank 2 from 3.0; rank 0 had ended and rank 3 not begun"
    assert bars[0][1][0] == pytest.approx(left)
    assert sum(bars[1][1]) == pytest.approx(left + width)
    texts = [t.text for t in svg_of(figure).iter(f"{SVG}text") if t.get("class") == "rank"]
    assert texts == ["rank 0", "rank 1", "rank 2", "rank 3"], "a rank with nothing in this part keeps its lane"
    with pytest.raises(ValueError, match=r"no operation of the trace lies in the 1 s from begin=7"):
        timeline(trace, begin=7, span=1)


def test_where_several_are_on_their_way_the_lane_is_no_darker():
    trace = [ALL_REDUCE._replace(rank=0, start=0.1 * i, wait=0.5 + 0.1 * i, end=0.6 + 0.1 * i) for i in range(3)]
    root = svg_of(timeline(trace))
    (faded,) = [g for g in root.iter(f"{SVG}g") if g.get("opacity")]
    assert [r.get("class") for r in faded] == ["under-way"] * 3
    assert not [r for r in root.iter(f"{SVG}rect") if r.get("fill-opacity")]


@pytest.mark.parametrize("span", [1e-5, 3.3e-4, 0.00999, 0.1, 7.0])
def test_timeline_has_a_handful_of_round_ticks(span):
    trace = [ALL_REDUCE._replace(rank=0, start=0.0, wait=0.0, end=span)]
    ticks = [t.text for t in svg_of(timeline(trace)).iter(f"{SVG}text") if t.get("text-anchor") == "middle"]
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == "0"


def test_timeline_of_nothing_is_refused():
    with pytest.raises(ValueError, match="the trace is empty; call launch"):
        timeline([])


def test_the_picture_in_the_readme_is_drawn_from_the_schedule():
    """To draw it again: python -m tests.figures.test_figures"""
    assert README_PICTURE.read_text() == readme_picture()
    ET.fromstring(README_PICTURE.read_text())


def readme_picture():
    return standalone(spacetime(ring_all_reduce(4)))


if __name__ == "__main__":
    README_PICTURE.write_text(readme_picture())


def test_queues_show_what_runs_what_waits_and_what_stands_behind():
    def ring(batch):
        return [
            Operation(kind, rank, 0.0, peer=(rank + step) % 3, members=(0, 1, 2), batch=batch, sequence=number)
            for rank in range(3)
            for number, (kind, step) in enumerate((("send", 1), ("recv", -1)))
        ]

    def boxes(figure):
        return Counter(re.findall(r'<g class="(runs|waits|behind)"', figure._repr_html_()))

    assert boxes(queues(ring(None))) == {"waits": 3, "behind": 3}
    assert boxes(queues(ring(0))) == {"runs": 6}
    assert "What never runs: rank 0: send to 1" in queues(ring(None))._repr_html_()
    with pytest.raises(ValueError, match="nothing to draw"):
        queues([])


def test_an_empty_cell_of_a_table_is_no_heading():
    html = table([("ring", 1), ("", 2)], head=("", "ms")).html
    assert html.count("<th") - html.count("<thead") == 2  # "ms" and "ring"
    assert html.count("<td></td>") == 2
