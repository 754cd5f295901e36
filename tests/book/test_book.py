"""The built site, in a browser, from the disk: every page in light and dark, with and without scripts, on paper.

It is the one that `make book` built last; where there is none these tests are skipped. ``RINGZERO_SITE=DIRECTORY``
checks another one.
"""

import doctest
import gzip
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlparse

import pytest

from ringzero.drawing import palette
from ringzero.drawing.svg import READABLE
from ringzero_course import figures
from tests import predictions
from tests.conftest import needs_browser
from tests.page_site import extension

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("RINGZERO_SITE", ROOT / "_build/html")).resolve()
reading_time = extension("reading_time")
PAGES = ["intro", *re.findall(r"file: (\S+)", (ROOT / "book/_toc.yml").read_text())]


@pytest.fixture(scope="session")
def site():
    if not (SITE / "intro.html").is_file():
        pytest.skip("needs the site, which is not built here (make book)")
    return SITE


@pytest.fixture
def visit(browser, site):
    """``visit(name, **context options)`` opens a page. At the end none may have complained, or asked another site."""
    contexts, complaints = [], []

    def open_page(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(300_000)  # milliseconds, far above any load
        page.on("console", lambda m: m.type in ("error", "warning") and complaints.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        if options.get("java_script_enabled", True):  # without, the scripts a page preloads are cancelled
            page.on("requestfailed", lambda request: complaints.append(f"not there: {request.url}"))
        page.on("request", lambda r: urlparse(r.url).scheme in ("file", "data", "blob") or complaints.append(r.url))
        page.goto(f"{site.as_uri()}/{name}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.mark.parametrize("module", [predictions, reading_time])
def test_examples_of_what_reads_pages(module):
    assert doctest.testmod(module) == (0, len(re.findall(r"^ *>>> ", Path(module.__file__).read_text(), re.MULTILINE)))


@pytest.mark.parametrize("name", [name for name in PAGES if name[:2].isdigit()])
def test_a_chapter_says_what_it_needs_and_ends_with_exercises(name):
    text = (ROOT / f"book/{name}.md").read_text()
    _, _, opening = text.partition("\n# ")
    need = re.search(r"\A.*\n\n\*You need .* Reading takes about \{minutes\} minutes(.*)\*\n", opening)
    assert need, opening[:300]
    assert reading_time.minutes(text) <= 47, "a chapter is one sitting: 45 minutes"
    labs = {int(path.name[:2]) for path in (ROOT / "solutions").glob("[0-9]*.py")}
    leads_to = re.search(r"\b[Ll]abs? ([\d, and]*\d)", need[1])
    assert leads_to, need[1]
    assert {int(number) for number in re.findall(r"\d+", leads_to[1])} <= labs
    assert text.count("```{admonition} Remember\n") == 1
    _, _, exercises = text.partition("\n## Exercises\n")
    assert re.findall(r"^\*\*(\d+)\.\*\*", exercises, re.MULTILINE)[:5] == ["1", "2", "3", "4", "5"]


QUIZ = re.compile(r"^````\{admonition\} Quick check\n:class: quiz\n(.*?)^````$", re.DOTALL | re.MULTILINE)
ANSWER = re.compile(r"\A(.+?)^```\{dropdown\} Answer\n(.+?)^```\n\Z", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", [name for name in PAGES if name[:2].isdigit()])
def test_a_chapter_asks_twice_and_folds_the_answers(name):
    text = (ROOT / f"book/{name}.md").read_text()
    quizzes = list(QUIZ.finditer(text))
    assert len(quizzes) >= 2
    assert len(quizzes) == text.count(":class: quiz"), "one is not in the form that QUIZ has"
    for quiz in quizzes:
        found = ANSWER.fullmatch(quiz[1])
        assert found, quiz[1]
        question, answer = found.groups()
        assert "?" in question
        assert len(answer.split()) > 5, "an answer says why"
    # The first comes early, the second when much has been read, both before the exercises.
    exercises = text.index("\n## Exercises\n")
    assert quizzes[0].start() < 0.5 * exercises
    assert 0.5 * exercises < quizzes[-1].start() < exercises


NUMBER = re.compile(r"(?<![\w.])\d+(?:,\d{3})*(?:\.\d+)?")
ROLE = re.compile(r"\{\w+(:\w+)?\}`[^`]*`|`[^`]*`|\[[^]]*\]\([^)]*\)|\$[^$]*\$")  # not prose


@pytest.mark.parametrize("name", [name for name in PAGES if name[:2].isdigit()])
def test_every_exercise_s_answer_is_computed(name):
    """By a cell that prints it, or by values glued into the text. An answer in words says no number of its own."""
    _, _, after = (ROOT / f"book/{name}.md").read_text().partition("\n## Exercises\n")
    exercises = re.split(
        r"^(?=\*\*\d+\.\*\*)", re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0], flags=re.MULTILINE
    )[1:]
    given = {number for exercise in exercises for number in NUMBER.findall(exercise.partition("{dropdown}")[0])}
    for exercise in exercises:
        answer = re.search(r"^```\{dropdown\} Answer\n(.*?)^```$", exercise, re.DOTALL | re.MULTILINE)
        if answer is None:
            assert re.search(
                r"\{code-cell\} python\n:tags: \[hide-input, hide-output\]\n.*print\(", exercise, re.DOTALL
            ), exercise
        elif "{glue:text}" not in answer[1]:
            typed = {number for number in NUMBER.findall(ROLE.sub("", answer[1])) if number not in given}
            assert {number for number in typed if float(number.replace(",", "")) > 4} == set(), exercise


@pytest.mark.parametrize("name", [name for name in PAGES if name[:2].isdigit()])
def test_equations_of_plain_numbers_hold(name):
    """Such as $2^{22}/8192 = 512$; to the places that are printed."""
    text = (ROOT / f"book/{name}.md").read_text()
    for formula in re.findall(r"\$([^$\n]+)\$", text):
        plain = formula.replace("{,}", "").replace(r"\cdot", "*").replace(r"\times", "*").replace("^", "**")
        plain = re.sub(r"\\frac(\d)(\d)", r"(\1/\2)", plain).translate({ord("{"): "(", ord("}"): ")"})
        if re.fullmatch(r"[\d\s.*/+()-]+(=[\d\s.*/+()-]+)+", plain) and all(side.strip() for side in plain.split("=")):
            values = [eval(side) for side in plain.split("=")]
            assert values == pytest.approx([values[0]] * len(values), rel=5e-3), formula


class Links(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.anchors = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors |= {attributes.get("id"), attributes.get("name")}
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag in ("script", "link", "img", "iframe") and (url := attributes.get("src") or attributes.get("href")):
            self.loaded.append(url)


def test_every_internal_link_leads_somewhere(site):
    pages = {path: Links(path.read_text()) for path in site.glob("*.html")}
    assert {f"{page}.html" for page in PAGES} <= {path.name for path in pages}
    broken, checked = [], 0
    for path, page in pages.items():
        for link in [*page.links, *page.loaded]:
            url, anchor = urldefrag(link)
            if urlparse(url).scheme in ("http", "https", "mailto"):
                continue
            checked += 1
            target = (path.parent / unquote(urlparse(url).path)) if url else path
            if not target.exists() or (anchor and target in pages and unquote(anchor) not in pages[target].anchors):
                broken.append(f"{path.name}: {link}")
    assert broken == []
    assert checked > 100


def test_no_page_names_a_script_or_style_of_another_site(site):
    for path in site.glob("*.html"):
        text = path.read_text()
        assert [url for url in Links(text).loaded if urlparse(url).scheme or url.startswith("//")] == [], path.name
        assert not re.search(r"unpkg|jsdelivr|cdnjs|googleapis|gstatic", text), path.name


def test_every_page_with_cells_can_be_downloaded_as_a_notebook(site):
    with_cells = [page for page in PAGES if "code-cell" in (ROOT / f"book/{page}.md").read_text()]
    assert len(with_cells) >= 4
    for page in with_cells:
        assert (site / f"_sources/{page}.ipynb").is_file(), page
        assert f"_sources/{page}.ipynb" in (site / f"{page}.html").read_text(), page


PAIR = r'"[^"]*\b(ratio|measured / predicted|predicted / measured|formula / counted)\b[^"]*"'


@pytest.mark.parametrize("name", [name for name in PAGES if name[:2].isdigit()])
def test_what_misses_its_prediction_is_explained(site, name):
    """A measured value further than a fifth from its prediction is followed by an admonition of the class ``why``."""
    html = (site / f"{name}.html").read_text()
    if re.search(PAIR, (ROOT / f"book/{name}.md").read_text()):
        assert predictions.pairs(html), "the page names such columns, but none of its tables is read as one"
    assert predictions.unexplained(html) == []


UNEQUAL_FRAGMENTS = "largest in one step, formula / counted"  # chapter 8: the page says why, and has the exact number


@pytest.mark.parametrize("name", [name for name in PAGES if name[:2].isdigit()])
def test_what_is_counted_comes_out_as_predicted(site, name):
    """A count of bytes depends on no machine, so no paragraph excuses a miss."""
    pairs = predictions.pairs((site / f"{name}.html").read_text())
    counts = [pair for pair in pairs if "counted" in pair.what and UNEQUAL_FRAGMENTS not in pair.what]
    assert [pair for pair in counts if not 0.9 < pair.ratio < 1.1] == []


def table(head, *rows):
    return figures.table(rows, head).html


WHY = '<div class="why admonition"><p>Because.</p></div>'
PAIRS = {
    "a ratio": (table(("", "ms", "ratio"), ("ring", "9", "1.31")), [1.31]),
    "its own words": (table(("", "measured / one link"), ("ring", "0.70")), [0.7]),
    "two columns": (table(("", "predicted (ms)", "measured (ms)"), ("ring", "2,000", "1,000.0")), [0.5]),
    "one cell": (table(("", "bytes, formula / counted"), ("ring", "100 / 300"), ("tree", "none")), [3.0]),
    "the table's head": (table(("predicted / counted", "rank 0"), ("ring", "4 / 2")), [0.5]),
    "printed": ('<div class="cell_output"><pre>predicted 1.60 times as fast, measured 0.80 times</pre></div>', [0.5]),
    "printed, measured first": ('<div class="cell_output"><pre>takes 9 ms, predicted 6 ms:</pre></div>', [1.5]),
    "printed, a factor": (
        '<div class="cell_output"><pre>predicted 63.1 ms; the fastest try took 1.30 times that.</pre></div>',
        [1.3],
    ),
    "no pair": (table(("", "measured (ms)", "of it waiting"), ("ring", "2", "1")), []),
    "code": ("<div><pre>predicted 1, measured 5</pre></div>", []),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_pairs_are_found_and_explained_only_by_what_follows(pair):
    html, ratios = PAIRS[pair]
    inside = "<section id='page'><h1>P</h1><section id='one'><section id='deeper'>{}</section>{}</section>{}</section>"
    for below, after, is_explained in (("", "", False), (WHY, "", True), ("", f"<section>{WHY}</section>", False)):
        found = predictions.pairs(inside.format(html, below, after))
        assert [each.ratio for each in found] == pytest.approx(ratios)
        assert all(each.explained == is_explained for each in found)
    before = predictions.pairs(f"<section><section>{WHY}{html}</section></section>")
    assert not any(each.explained for each in before)


def wait_for_mathematics(page):
    """Every formula is set: MathJax has put a container with a picture into each, and none of them an error."""
    page.wait_for_function(
        "() => [...document.querySelectorAll('.math')].every(m => m.querySelector('mjx-container svg'))"
    )
    wrong = page.locator('mjx-container [data-mml-node="merror"], mjx-container [fill="red"]')  # red: unknown macros
    assert wrong.count() == 0, [formula.text_content() for formula in wrong.all()]


# For each label in a figure: its colour and the colour it stands on. Fainter groups show what has not happened yet.
LABELS = """() => {
  const page = getComputedStyle(document.querySelector('.bd-article') || document.body);
  const behind = e => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (!/, 0\\)$|transparent/.test(color)) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  return [...document.querySelectorAll('.rz-figure svg text')].filter(t => !t.closest('[opacity]')).map(t => ({
    text: t.textContent.trim(),
    color: getComputedStyle(t).fill,
    behind: t.classList.contains('chunk') ? getComputedStyle(t.previousElementSibling).fill : behind(t),
    chunk: t.classList.contains('chunk'),
  }));
}"""


# The longest line of each listing that scrolls sideways, folded ones too.
SCROLLING_CODE = """() => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  return [...document.querySelectorAll('div.highlight pre')].filter(code => code.scrollWidth > code.clientWidth + 1)
    .map(code => code.textContent.split('\\n').sort((a, b) => b.length - a.length)[0]);
}"""


# Figures that do not fit beside the sidebars.
SCROLLING_FIGURES = """() => [...document.querySelectorAll('.rz-scroll:has(svg)')]
  .filter(box => box.scrollWidth > box.clientWidth + 1)
  .map(box => box.querySelector('svg').getAttribute('aria-label'))"""


def as_hex(color):
    return "#" + "".join(f"{round(float(c)):02x}" for c in re.findall(r"[\d.]+", color)[:3])


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_a_page_in_light_and_dark(visit, name):
    seen = {}
    for mode in ("light", "dark"):
        page = visit(f"{name}.html", color_scheme=mode, viewport={"width": 1300, "height": 900})
        wait_for_mathematics(page)
        assert page.evaluate("document.documentElement.dataset.theme") == mode
        labels = page.evaluate(LABELS)
        for label in labels:
            ratio = palette.contrast(as_hex(label["color"]), as_hex(label["behind"]))
            assert ratio >= 4.5, f"{name}, {mode}: {label} has contrast {ratio:.1f}"
        seen[mode] = [label for label in labels if not label["chunk"]]
        assert page.evaluate(SCROLLING_FIGURES) == []
        assert page.evaluate(SCROLLING_CODE) == []
    for light, dark in zip(seen["light"], seen["dark"], strict=True):
        assert light["color"] != dark["color"], light
        assert light["behind"] != dark["behind"], light


# What axe finds in what the theme and docutils write, which is not ours to change: by rule, how the elements begin.
TITLE_ABOVE_THE_CONTENTS = '<div class="sidebar-primary-item">'
ENTRY, ENTRIES = '<div class="citation" id="', '<div role="list" class="citation-list">'  # of the bibliography
OF_THE_THEME = {
    "region": TITLE_ABOVE_THE_CONTENTS,
    "aria-allowed-role": ENTRY,
    "aria-deprecated-role": ENTRY,
    "aria-required-children": ENTRIES,
}


def found_by_axe(page, **options):
    """``(rule, element, its HTML)`` of what is hard to use without eyes, hands or colours, but for the theme's own."""
    from axe_playwright_python.sync_playwright import Axe

    # Colours fade in for up to 0.25 s while a page loads: what axe reads in that time is the contrast of no mode.
    page.wait_for_function("document.getAnimations().length === 0")
    options |= {"resultTypes": ["violations"], "preload": False}  # a page on a disk may not ask for files
    formulas = {"exclude": [["mjx-container"]]}  # thousands of elements that MathJax makes, in the text's own colour
    return [
        (rule["id"], node["target"], node["html"][:200])
        for rule in Axe().run(page, formulas, options).response["violations"]
        for node in rule["nodes"]
        if not node["html"].startswith(OF_THE_THEME.get(rule["id"], "none"))
    ]


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_only_what_is_the_theme_s(visit, name):
    page = visit(f"{name}.html", color_scheme="light", viewport={"width": 1300, "height": 900})
    wait_for_mathematics(page)
    assert found_by_axe(page) == []


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_axe_can_read_all_text_in_dark_mode(visit, name):
    """Of all its rules only this one depends on the mode."""
    page = visit(f"{name}.html", color_scheme="dark", viewport={"width": 1300, "height": 900})
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert found_by_axe(page, runOnly=["color-contrast"]) == []


@needs_browser
def test_axe_looks(visit):
    """At each of these: a picture without words, a field without a name, grey on white."""
    page = visit("notation.html")
    page.evaluate(
        """() => document.querySelector('.bd-article').insertAdjacentHTML('beforeend', `
             <img src="data:image/gif;base64,R0lGODlhAQABAAAAACw="><input>
             <p style="color: #999; background: #fff">grey</p>`)"""
    )
    assert {rule for rule, _, _ in found_by_axe(page)} >= {"image-alt", "label", "color-contrast"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_light(site, name):
    assert len(gzip.compress((site / f"{name}.html").read_bytes())) < 600e3


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_telephone(visit, name):
    page = visit(f"{name}.html", viewport={"width": 390, "height": 800})
    wait_for_mathematics(page)
    assert page.evaluate("document.scrollingElement.scrollWidth") <= 390
    page.locator(".primary-toggle:visible").click()
    page.locator("dialog[open]").get_by_role("link", name="Notation").wait_for()


# Of each figure: its smallest text in pixels of the screen, folded figures too.
SMALLEST_TEXT = """() => {
  for (const folded of document.querySelectorAll('details')) folded.open = true;
  return [...document.querySelectorAll('svg[role="img"]')].filter(svg => svg.querySelector('text')).map(svg => {
    const of = [...svg.querySelectorAll('text, tspan')].filter(t => t.textContent.trim()).map(t => {
      const { a, b, c, d } = t.getScreenCTM();
      return [parseFloat(getComputedStyle(t).fontSize) * Math.sqrt(Math.abs(a * d - b * c)), t.textContent];
    });
    return [...of.sort((one, other) => one[0] - other[0])[0], svg.getAttribute('aria-label')];
  });
}"""


@needs_browser
@pytest.mark.parametrize("name", PAGES)
def test_the_text_of_figures_can_be_read_on_a_telephone(visit, name):
    page = visit(f"{name}.html", viewport={"width": 390, "height": 800})
    smallest = page.evaluate(SMALLEST_TEXT)
    assert len(smallest) >= page.locator(".rz-figure svg:has(text)").count()
    assert [each for each in smallest if each[0] < READABLE - 0.05] == []
    assert [legend.inner_text() for legend in page.locator(".rz-legend").all() if not legend.is_visible()] == []
    page.set_viewport_size({"width": 1300, "height": 800})  # there the names stand at the ends of the lines
    assert page.locator(".rz-legend:visible").count() == 0


def pages_with(text):
    return [page for page in PAGES if re.search(rf"^\s*{text}", (ROOT / f"book/{page}.md").read_text(), re.MULTILINE)]


@needs_browser
@pytest.mark.parametrize("name", pages_with(r"explore\("))
def test_a_figure_moves_by_keyboard(visit, name):
    page = visit(f"{name}.html")
    boxes = page.locator(".rz-explore").all()
    assert boxes
    for box in boxes:
        view, status = box.locator(".rz-view"), box.locator(".rz-status")
        assert status.get_attribute("aria-live") == "polite"
        for control in box.locator("input, select").all():
            assert control.evaluate("c => c.labels.length") == 1
            before, said = view.inner_html(), status.text_content()
            at_end = control.evaluate("c => c.value === (c.max || String(c.options.length - 1))")
            there, back = ("ArrowLeft", "ArrowRight") if at_end else ("ArrowRight", "ArrowLeft")
            control.focus()
            page.keyboard.press(there)
            assert status.text_content() != said
            assert view.inner_html() != before
            if control.get_attribute("type") == "range":
                shown = control.evaluate("c => c.parentElement.querySelector('output').textContent")
                assert control.get_attribute("aria-valuetext") == shown
                assert shown in status.text_content()
            page.keyboard.press(back)
            assert view.inner_html() == before


@needs_browser
@pytest.mark.parametrize("name", pages_with(r"explore\("))
def test_without_a_script_and_on_paper_the_figure_stays(visit, name):
    page = visit(f"{name}.html", java_script_enabled=False)
    for box in page.locator(".rz-explore").all():
        assert box.locator(".rz-view svg, .rz-view table").first.is_visible()
        assert not box.locator(".rz-controls").is_visible()
    page = visit(f"{name}.html")
    assert page.locator(".rz-controls").first.is_visible()
    page.emulate_media(media="print")
    for box in page.locator(".rz-explore").all():
        assert box.locator(".rz-view svg, .rz-view table").first.is_visible()
        assert not box.locator(".rz-controls").is_visible()
        assert box.locator(".rz-status").evaluate("s => s.getBoundingClientRect().height") > 10


@needs_browser
@pytest.mark.parametrize("name", pages_with(r"questions\.\w+\("))
def test_a_calculator_computes_in_the_page(visit, name):
    page = visit(f"{name}.html")
    for box in page.locator(".rz-calculator").all():
        said = box.locator(".rz-status").text_content()
        box.locator("input[type=range]").last.press("ArrowRight")
        page.wait_for_function(
            "([id, said]) => document.querySelector(`#${id} .rz-status`).textContent !== said",
            arg=[box.get_attribute("id"), said],
        )
        box.locator(".rz-note").wait_for(state="hidden")  # it stays where the page shows its grid's nearest view


@needs_browser
@pytest.mark.parametrize("name", pages_with("```{dropdown}"))
def test_answers_are_folded_and_open(visit, name):
    page = visit(f"{name}.html")
    for answer in page.locator("details.sd-dropdown").all():
        assert not answer.locator(".sd-summary-content").is_visible()
        answer.locator("summary").press("Enter")
        assert answer.locator(".sd-summary-content").is_visible()


@needs_browser
def test_search_works_from_the_disk(visit):
    page = visit("search.html?q=deadlock")
    results = page.locator("#search-results li a")
    results.first.wait_for()
    assert "00_why_many_gpus.html" in " ".join(a.get_attribute("href") for a in results.all())
