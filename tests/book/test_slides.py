"""A deck shows what its page shows, opens from a disk, and is turned by keys."""

import re

import pytest

pytest.importorskip("bs4")

from bs4 import BeautifulSoup

from tests.conftest import needs_browser
from tests.page_site import BOOK, elsewhere, extension, watched

SITE = BOOK.parent / "_build/html"
slides = extension("slides")
PAGE = """<html><head><link rel="stylesheet" href="_static/ringzero.css"><script src="_static/explore.js"></script>
<script src="_static/searchtools.js"></script></head><body><article class="bd-article"><section id="a">
<h1>1 · A page<a class="headerlink" href="#a">#</a></h1>
<p>You need.</p><p>After this page you can</p><ul><li>see (<a href="#check">check 1</a>)</li></ul><p>How many?</p>
<section id="one"><h2>One</h2><p>Words.</p>
<div class="cell_output"><div class="output"><figure class="rz-figure"><svg viewBox="0 0 1 1"></svg></figure></div>
</div>
<div class="cell_output"><div class="output"><pre>printed</pre></div></div>
<div class="cell_output"><div class="output"><pre>before</pre></div><div class="output">
<figure class="rz-figure">first</figure><figure class="rz-figure">second</figure></div>
<div class="output"><pre>behind</pre></div></div>
<details><div class="cell_output"><div class="output"><figure class="rz-figure">folded</figure></div></div></details>
<div class="quiz admonition" id="check"><p class="admonition-title">Quick check</p><p>Why? <a href="02.html">2</a></p>
</div>
<div class="note admonition"><p class="admonition-title">No GPU here</p></div>
<section id="deep"><h3>Deep</h3><div class="cell_output"><div class="output"><div class="rz-explore">moves</div></div>
</div></section></section>
<section id="exercises"><h2>Exercises</h2><div class="cell_output"><div class="output">
<div class="rz-figure">answer</div></div></div></section>
</section></article></body></html>"""


def test_what_the_page_marks_is_a_slide_and_nothing_else():
    made = [slide.get_text(" ", strip=True) for slide in _slides(slides.deck(PAGE, "01_page"))]
    assert made == [
        "1 · A page After this page you can see ( check 1 )",
        "Guess first How many?",
        "One",
        "One before first",
        "One second behind",
        "One Quick check Why? 2",
        "Deep moves",
    ]


def test_links_and_scripts_are_found_from_the_deck_s_folder():
    deck = slides.deck(PAGE, "01_page")
    assert 'href="../01_page.html#check"' in deck
    assert 'href="../02.html"' in deck
    assert 'href="../_static/ringzero.css"' in deck
    assert 'src="../_static/explore.js"' in deck
    assert "searchtools" not in deck


def test_without_a_site_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(slides, "SITE", tmp_path)
    with pytest.raises(SystemExit, match=f"no chapters in {tmp_path}: make book"):
        slides.main()


def _slides(html):
    return BeautifulSoup(html, "html.parser").select(".slide")


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    """The decks of the site that was built last, in it."""
    if not (SITE / "03_what_a_collective_costs.html").is_file():
        pytest.skip("needs the site, which is not built here (make book)")
    slides.main()
    return SITE / "slides"


@pytest.mark.parametrize("name", [path.stem for path in sorted(BOOK.glob("[0-9]*.md"))])
def test_a_deck_has_the_figures_and_checks_of_its_page(decks, name):
    page = BeautifulSoup((SITE / f"{name}.html").read_text(), "html.parser")
    deck = _slides((decks / f"{name}.html").read_text())
    assert 6 <= len(deck) <= 32
    drawn = {str(svg) for svg in page.select(".rz-figure svg")}
    assert drawn >= {str(svg) for slide in deck for svg in slide.select(".rz-figure svg")} != set()
    text = (BOOK / f"{name}.md").read_text()
    assert sum(len(slide.select(".quiz")) for slide in deck) == text.count(":class: quiz")
    assert sum("Remember" in slide.get_text() for slide in deck) >= 1
    assert re.sub(r"\W", "", deck[1].get_text())[10:40] in re.sub(r"\W", "", page.get_text())


@needs_browser
def test_a_deck_opens_from_a_disk_and_keys_turn_it(decks, browser):
    requests, complaints = [], []
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = watched(context, requests, complaints)
    page.goto(f"{(decks / '03_what_a_collective_costs.html').as_uri()}")
    count = page.locator(".slide").count()
    seen = [page.locator(".slide:visible h1, .slide:visible h2").first.text_content()]
    for key in ("ArrowRight", "PageDown", " ", "ArrowLeft", "End", "ArrowRight", "Home", "ArrowLeft"):
        page.keyboard.press(key)
        assert page.locator(".slide:visible").count() == 1
        seen.append(page.locator("nav output").text_content().split()[0])
    assert seen == ["3 · What a collective costs", "2", "3", "4", "3", f"{count}", f"{count}", "1", "1"]
    at = page.evaluate("[...document.querySelectorAll('.slide')].findIndex(s => s.querySelector('.rz-explore')) + 1")
    page.evaluate(f"location.hash = '#{at}'")
    page.locator(f"nav output:text-is('{at} of {count}')").wait_for()
    page.locator(".slide:visible input[type=range]").first.focus()
    seen = []
    for key in ("Home", "End"):
        page.keyboard.press(key)
        seen.append(page.locator(".slide:visible .rz-view").first.inner_html())
    assert page.locator("nav output").text_content() == f"{at} of {count}", "the keys belong to the control"
    assert seen[0] != seen[1], "the figure moves as on the page"
    context.close()
    assert (elsewhere(requests), complaints) == ([], [])


@needs_browser
@pytest.mark.parametrize("name", ["03_what_a_collective_costs", "04_trees_butterflies_tori", "06_data_parallel"])
def test_each_slide_fits_above_the_buttons(decks, browser, name):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    page.goto((decks / f"{name}.html").as_uri())
    count = page.locator(".slide").count()
    for number in range(1, count + 1):
        page.evaluate(f"location.hash = '#{number}'")
        page.locator(f"nav output:text-is('{number} of {count}')").wait_for()
        page.evaluate("document.querySelectorAll('.slide:not([hidden]) details').forEach((each) => (each.open = true))")
        page.wait_for_function("document.documentElement.scrollHeight <= innerHeight")
        shown, buttons = (page.locator(each).bounding_box() for each in (".slide:visible", "nav"))
        assert shown["y"] + shown["height"] <= buttons["y"] + 1, f"slide {number} is above the buttons"
    page.close()
