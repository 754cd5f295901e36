"""The stepper: its data are the schedules, and what the page plays back is what they do."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from ringzero.collectives import ALGORITHMS, world_sizes
from ringzero.collectives.algorithms import options
from ringzero_course.figures import stepper
from tests.conftest import needs_browser

PAGE = Path(__file__).parents[2] / "book/_page"
SUMMING = ("all_reduce", "reduce_scatter", "reduce", "barrier")


def data_of(figure):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', figure.html, re.DOTALL).group(1))


def transfers(rounds):
    """(round, src, dst, chunk, reduce) of what the page is given, read with nothing of the code that wrote it."""
    for number, round in enumerate(rounds):
        for src, dst, sign, chunks in re.findall(r"(\w)(\w)([+=])(\S+)", round):
            for run in chunks.split(","):
                first, _, last = run.partition("-")
                for chunk in range(int(first), int(last or first) + 1):
                    yield number, int(src, 36), int(dst, 36), chunk, sign == "+"


@pytest.mark.parametrize("collective", ALGORITHMS)
def test_the_data_are_the_schedules(collective):
    choices = {"chunks": 3} if any("chunks" in options(collective, name) for name in ALGORITHMS[collective]) else {}
    data = data_of(stepper(collective, **choices))
    assert [each["name"].replace(" ", "_") for each in data["algorithms"]] == list(ALGORITHMS[collective])
    for name, written in zip(ALGORITHMS[collective], data["algorithms"], strict=True):
        sizes = [n for n in world_sizes(collective, name, 16) if n > 1]
        assert [each["ranks"] for each in written["schedules"]] == sizes
        for each in written["schedules"]:
            make = ALGORITHMS[collective][name]
            pieces = {"chunks": 3} if "chunks" in make.__code__.co_varnames[: make.__code__.co_argcount] else {}
            schedule = make(each["ranks"], **pieces)
            assert len(each["rounds"]) == len(schedule.rounds)
            assert each["chunks"] == schedule.chunks
            expected = Counter(
                (number, *transfer) for number, round in enumerate(schedule.rounds) for transfer in round
            )
            assert Counter(transfers(each["rounds"])) == expected


def test_all_algorithms_for_up_to_16_ranks_are_a_light_page():
    assert len(stepper("all_reduce", chunks=2).html.encode()) < 300_000


def test_a_schedule_that_is_wrong_is_not_shown(monkeypatch):
    def forgets_the_last_round(world_size):
        schedule = ALGORITHMS["all_gather"]["ring"](world_size)
        return type(schedule)("all_gather", "ring", world_size, world_size, list(schedule.rounds)[:-1])

    monkeypatch.setitem(ALGORITHMS["all_reduce"], "flat", forgets_the_last_round)
    with pytest.raises(AssertionError, match="does not hold chunk"):
        stepper("all_reduce")


def test_without_a_script_the_whole_schedule_is_there_and_the_inputs_are_hidden():
    html = stepper("all_reduce", start=("binomial", 5), caption="<c>").html
    before_script = html[: html.index("<script")]
    assert "all-reduce, binomial, 5 ranks. 6 rounds, 8 transfers" in before_script
    assert before_script.count('class="round"') == 6
    assert '<div class="rz-controls" hidden>' in html
    assert 'aria-live="polite"' in html
    assert "&lt;c&gt;" in html


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"collective": "all_sum"}, "'all_sum'; it is one of all_reduce"),
        ({"chunk": 2}, r"no algorithm of all_reduce takes 'chunk'; they take \['chunks'"),
        ({"start": ("ring", 17)}, "start is .'ring', 17."),
        ({"start": ("rong", 4)}, "name one of ring"),
        ({"collective": "all_gather", "start": ("recursive_doubling", 6)}, "ranks it takes"),
    ],
)
def test_what_is_not_there_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        stepper(**arguments)


# In a browser


@pytest.fixture
def show(browser, tmp_path):
    """``show(figure)`` opens a page from the disk with the figure, the book's script and its style."""
    contexts, complaints = [], []

    def open_page(figure, **options):
        head = '<!doctype html><meta charset="utf-8"><title>t</title>'
        head += f'<link rel="stylesheet" href="{(PAGE / "ringzero.css").as_uri()}">'
        scripts = "".join(f'<script src="{(PAGE / name).as_uri()}"></script>' for name in ("stepper.js", "play.js"))
        (tmp_path / "page.html").write_text(f"{head}<main>{figure.html}</main>{scripts}")
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda m: complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto((tmp_path / "page.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def after_each_round(schedule):
    """[{(rank, chunk): set of ranks}, ...] before the first round and after each."""
    n, root, gathered = schedule.world_size, schedule.root, schedule.collective in ("all_gather", "gather")

    def at_first(rank, chunk):
        if schedule.collective in SUMMING:
            return {rank}
        source = chunk // n if schedule.collective == "all_to_all" else chunk if gathered else root
        return {rank} if rank == source else set()

    states = [{(rank, chunk): at_first(rank, chunk) for rank in range(n) for chunk in range(schedule.chunks)}]
    for round in schedule.rounds:
        old, new = states[-1], dict(states[-1])
        for src, dst, chunk, reduce in round:
            new[dst, chunk] = old[src, chunk] | (new[dst, chunk] if reduce else set())
        states.append(new)
    return states


def shown(page):
    """{(rank, chunk): set of ranks} and the cells drawn bold, read off the picture."""
    cells = page.locator(".cell").evaluate_all(
        "cells => cells.map(c => [c.textContent, c.getAttribute('stroke-width')])"
    )
    held, bold = {}, set()
    for title, stroke in cells:
        place, _, inside = title.partition(": ")
        cell = tuple(map(int, re.findall(r"\d+", place)))
        held[cell] = set(map(int, re.findall(r"\d+", inside)))
        if stroke:
            bold.add(cell)
    return held, bold


@needs_browser
@pytest.mark.parametrize(
    ("collective", "name", "ranks", "choices"),
    [
        ("all_reduce", "ring", 5, {}),
        ("all_reduce", "rabenseifner", 6, {}),
        ("all_reduce", "double_binary_tree", 7, {"chunks": 3}),
        ("all_reduce", "mesh_2d", 6, {}),
        ("all_reduce", "torus_3d", 16, {}),
        ("reduce_scatter", "recursive_halving", 8, {}),
        ("all_gather", "bruck", 6, {}),
        ("broadcast", "scatter_ring", 5, {}),
        ("reduce", "binary_tree", 5, {"chunks": 2}),
        ("gather", "binomial", 6, {}),
        ("scatter", "binomial", 6, {}),
        ("all_to_all", "bruck", 5, {}),
        ("barrier", "dissemination", 6, {}),
    ],
)
def test_the_page_plays_the_schedule(show, collective, name, ranks, choices):
    page = show(stepper(collective, start=(name, ranks), **choices))
    schedule = ALGORITHMS[collective][name](ranks, **choices)
    states = after_each_round(schedule)
    press(page, "First")
    for k, expected in enumerate(states):
        held, bold = shown(page)
        assert held == expected, f"after round {k}"
        messages = {(t.dst, t.chunk) for t in schedule.rounds[k - 1]} if k else set()
        assert bold == messages
        assert page.locator(".message").count() == (len({t[:2] for t in schedule.rounds[k - 1]}) if k else 0)
        assert f"{name.replace('_', ' ')}, {ranks} ranks, round {k} of {len(schedule.rounds)}: " in status(page)
        press(page, "Next")
    promised, everyone = int(re.search(r"of (\d+) chunks", status(page)).group(1)), set(range(ranks))
    assert f"{promised} of {promised} chunks are as promised" in status(page), "what verify has proved"
    full = [cell for cell, inside in held.items() if inside == everyone]
    whole = {
        "all_reduce": ranks * schedule.chunks,
        "barrier": ranks,
        "reduce_scatter": ranks,
        "reduce": schedule.chunks,
    }
    if collective in SUMMING:
        assert promised == whole[collective] <= len(full)


def press(page, button):
    page.locator("button", has_text=button).press("Enter")


def status(page):
    return page.locator(".rz-status").text_content()


@needs_browser
def test_play_goes_to_the_last_round_and_from_there_begins_again(show):
    page = show(stepper("all_gather", start=("ring", 3)))
    press(page, "Play")
    page.get_by_text("round 2 of 2: ", exact=False).wait_for(state="attached")
    page.get_by_role("button", name="Play").wait_for()  # it said Stop while it moved
    press(page, "Play")
    assert "round 0 of 2" in status(page)
    page.get_by_role("button", name="Stop").wait_for()
    press(page, "Stop")
    page.get_by_role("button", name="Play").wait_for()


@needs_browser
def test_it_moves_by_keyboard_and_says_so(show):
    page = show(stepper("all_gather", start=("ring", 6)))
    menu, (ranks, round) = page.locator("select"), page.locator("input").all()
    for control in (menu, ranks, round):
        assert control.evaluate("c => c.labels.length") == 1
    assert "ring, 6 ranks, round 1 of 5" in status(page)
    round.focus()
    page.keyboard.press("ArrowRight")
    assert "round 2 of 5" in status(page)
    assert round.get_attribute("aria-valuetext") == "2 of 5"
    page.keyboard.press("End")
    assert "round 5 of 5" in status(page)
    assert "36 of 36 chunks are as promised" in status(page)
    press(page, "Next")  # beyond the end: nothing, and the focus stays
    assert "round 5 of 5" in status(page)
    assert page.evaluate("document.activeElement.textContent") == "Next"
    press(page, "Back")
    assert "round 4 of 5" in status(page)
    press(page, "First")
    assert "round 0 of 5: nothing sent yet" in status(page)
    press(page, "Last")
    assert "round 5 of 5" in status(page)
    ranks.focus()
    page.keyboard.press("ArrowRight")
    assert "ring, 7 ranks, round 1 of 6" in status(page)
    menu.select_option("recursive doubling")
    assert "recursive doubling, 8 ranks, round 1 of 3" in status(page), "7 is not to be had"
    menu.select_option("bruck")
    assert "bruck, 7 ranks, round 1 of 3" in status(page), "and 7 was wanted"


@needs_browser
def test_the_picture_says_who_sends_what_to_whom(show):
    page = show(stepper("all_reduce", start=("rabenseifner", 4)))
    picture = page.locator(".rz-view svg")
    assert picture.get_attribute("aria-label").startswith(
        "Round 1. rank 0 to rank 2, added: chunk 2–3; rank 1 to rank 3"
    )
    labels = [text.text_content() for text in page.locator(".message + text").all()]
    assert labels == ["+2–3", "+2–3", "+0–1", "+0–1"]
    press(page, "Last")
    assert [text.text_content() for text in page.locator(".message + text").all()] == ["0–1", "0–1", "2–3", "2–3"]


@needs_browser
def test_without_a_script_and_on_paper(show):
    figure = stepper("all_reduce", start=("ring", 4))
    page = show(figure, java_script_enabled=False)
    assert page.locator(".rz-view svg").is_visible()
    assert not page.locator(".rz-controls").is_visible()
    page = show(figure)
    assert page.locator(".rz-controls").is_visible()
    page.emulate_media(media="print")
    assert page.locator(".rz-view svg").is_visible()
    assert not page.locator(".rz-controls").is_visible()
    assert page.locator(".rz-status").evaluate("s => s.getBoundingClientRect().height") > 10
