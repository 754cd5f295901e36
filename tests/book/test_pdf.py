"""The book as one PDF: every page and figure is in it, and a link between pages is a link inside it."""

import re
import zlib
from collections import Counter

import pytest

pytest.importorskip("bs4")

from bs4 import BeautifulSoup

from tests.conftest import needs_browser
from tests.page_site import BOOK, extension

SITE = BOOK.parent / "_build/html"
pdf = extension("pdf")
PAGE = """<html><head><title>{name} &#8212; the book</title></head><body><nav>not printed</nav>
<article><section id="top">
<h1>{name}<a class="headerlink" href="#top">#</a></h1>
<p><a href="#top">up</a> <a href="{other}.html">page</a> <a href="{other}.html#top">part</a> <a href="https://a.org">a</a>
<a href="_sources/{name}.ipynb">file</a></p>
<details class="above-input"><p>code of a figure</p></details><details><p>an answer</p></details>
<figure aria-labelledby="t d"><svg viewBox="0 0 9 9" width="90" height="90"><title id="t">A</title><desc id="d">B</desc>
<linearGradient id="g"/><rect width="5" height="5" fill="#336699"/><path d="M1 1h1" fill="url(#g)"/></svg></figure>
</section></article></body></html>"""
PAGES = {"one": PAGE.format(name="one", other="two"), "two": PAGE.format(name="two", other="one")}


@pytest.fixture
def site(tmp_path):
    for name, page in PAGES.items():
        (tmp_path / f"{name}.html").write_text(page)
    return tmp_path


def test_the_pages_are_those_of_the_table_of_contents_in_its_order():
    contents = (
        "format: jb-book\nroot: intro\nparts:\n  - caption: Chapters\n    chapters:\n      - file: b\n      - file: a\n"
    )
    assert pdf.pages_of(contents) == ["intro", "b", "a"]
    assert set(pdf.pages_of((BOOK / "_toc.yml").read_text())) == {path.stem for path in BOOK.glob("*.md")}


def test_ids_are_told_apart_by_page_and_what_points_at_them_follows():
    page = pdf.article(PAGES["one"], "one", ["one", "two"])
    links = {link.get_text(): link.get("href") for link in page.select("a")}
    assert links == {"up": "#one-top", "page": "#two", "part": "#two-top", "a": "https://a.org", "file": None}
    assert page["id"] == "one"
    assert page.figure["aria-labelledby"] == "one-t one-d"
    assert page.path["fill"] == "url(#one-g)"
    assert page.select_one("#one-g")


def test_answers_are_unfolded_and_the_code_of_figures_is_left_out():
    page = pdf.article(PAGES["one"], "one", ["one", "two"])
    assert [each.get_text() for each in page.select("details[open]")] == ["an answer"]
    assert "code of a figure" not in page.get_text()


def test_without_a_site_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf, "SITE", tmp_path)
    with pytest.raises(SystemExit, match=f"not in {tmp_path}: intro, 00.*make book"):
        pdf.main()


@needs_browser
def test_the_pdf_has_pages_bookmarks_figures_and_links_that_lead_somewhere(site):
    pdf.print_to(site / "book.pdf", pdf.whole(site, [*PAGES]))
    printed = (site / "book.pdf").read_bytes()
    assert sorted(path.name for path in site.iterdir()) == ["book.pdf", "one.html", "two.html"]
    assert len(re.findall(rb"/Type /Page\b", printed)) == 3  # the contents, and two pages
    wanted = re.findall(rb"/Dest /(\S+)", printed)
    assert Counter(wanted) == {b"one": 2, b"two": 2, b"one-top": 2, b"two-top": 2}  # the contents name pages, too
    number = re.search(rb"/Dests (\d+) 0 R", printed)[1]
    places = re.search(rb"\n%s 0 obj\n<<(.*?)>>\nendobj" % number, printed, re.DOTALL)[1]
    assert set(re.findall(rb"/([\w-]+) \[", places)) >= set(wanted)
    assert printed.count(b"/URI (https://a.org") == 2
    assert set(re.findall(rb"/Title \((.*?)\)", printed)) >= {b"one", b"two"}
    assert filled(printed) == 2, "a rectangle in #336699 on each page"


def filled(printed):
    """How often something is filled with #336699 in the bytes of a PDF."""
    streams = re.findall(rb"/FlateDecode.*?stream\n(.*?)\nendstream", printed, re.DOTALL)
    drawn = b"".join(zlib.decompressobj().decompress(stream) for stream in streams)
    return len(re.findall(rb"\.2\d* \.4\d* \.6\d* rg", drawn))


@needs_browser
@pytest.mark.parametrize(
    "box", ["<div class='cell_input' {}>x<pre style='break-inside: avoid'>{}</pre></div>", "<h2 {}>{}</h2>"]
)
def test_a_box_of_code_and_a_heading_are_on_one_page(site, box):
    """Where the code went to the next page, the box around it stayed, empty."""
    high = "<div style='height: 23cm'></div>" + box.format("style='border-left: 4px solid #336699'", "x<br>" * 12)
    (site / "one.html").write_text(re.sub("<figure.*</figure>", high, PAGES["one"], flags=re.DOTALL))
    pdf.print_to(site / "book.pdf", pdf.whole(site, ["one"]))
    assert filled((site / "book.pdf").read_bytes()) == 1


def test_the_book_s_own_links_lead_somewhere_and_no_figure_is_lost():
    names = pdf.pages_of((BOOK / "_toc.yml").read_text())
    if not all((SITE / f"{name}.html").is_file() for name in names):
        pytest.skip("needs the site, which is not built here (make book)")
    whole = BeautifulSoup(pdf.whole(SITE, names), "html.parser")
    ids = {tag["id"] for tag in whole.select("[id]")}
    links = [link["href"][1:] for link in whole.select("a[href^='#']")]
    assert len(links) > 100
    assert sorted({link for link in links if link not in ids}) == []
    assert not whole.select("a[href$='.html']:not([href^=http])")
    for name in names:
        page = BeautifulSoup((SITE / f"{name}.html").read_text(), "html.parser")
        assert len(whole.find(id=name).select("svg")) == len(page.select("article svg")), name
