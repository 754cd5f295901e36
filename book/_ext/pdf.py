"""The whole book as one PDF, made from the pages that were built: there is no second text to keep.

    python book/_ext/pdf.py          _build/html/ringzero.pdf

The articles of all pages follow each other in one HTML file, in the order of the table of contents. Each id has its
page's name in front, so it is unique, and a link to another page becomes a link inside the file. Chromium sets the
formulas and prints. A moving figure is printed in its first state. Answers are unfolded; the code of figures is left
out.
"""

import re
import shutil
from pathlib import Path

from bs4 import BeautifulSoup, Tag

BOOK = Path(__file__).resolve().parents[1]
SITE = BOOK.parent / "_build/html"
POINTS_AT_IDS = ("id", "for", "aria-labelledby", "aria-describedby")
MATHJAX = re.compile(r"_static/mathjax|window\.MathJax")
WHOLE = """<!doctype html>
<html lang="en" data-theme="light">
<head><meta charset="utf-8"><title>{title}</title>
{head}
<style>
.page {{ break-before: page; }}
.contents {{ columns: 2; }}
h1, h2, h3, h4, .cell_input {{ break-after: avoid; }}
h1, h2, h3, h4 {{ padding-top: 0.3em; }} /* else letters reach into the page before, and bookmarks say them twice */
h1, h2, h3, h4, tr, figure, svg, .admonition-title, .cell_input {{ break-inside: avoid; }}
.bd-content svg, mjx-container {{ max-width: 100%; }}
</style></head>
<body><main class="bd-content bd-article"><h1>{title}</h1><ol class="contents">
{contents}
</ol>
{pages}
</main></body></html>
"""


def pages_of(contents: str) -> list[str]:
    """The names of the pages in a table of contents, such as ``book/_toc.yml``, in its order."""
    return re.findall(r"^[\s-]*(?:root|file): (\S+)$", contents, re.MULTILINE)


def article(page: str, name: str, names: list[str]) -> Tag:
    """What the page ``name`` says, with ids and links as they are in one file with the other ``names``."""
    found = BeautifulSoup(page, "html.parser").select_one("article")
    for tag in found.select("a.headerlink, script, button, details.above-input"):
        tag.decompose()
    for tag in found.find_all(True):
        for key, value in tag.attrs.items():
            if key in POINTS_AT_IDS:
                tag[key] = " ".join(f"{name}-{each}" for each in value.split())
            elif isinstance(value, str) and "url(#" in value:
                tag[key] = value.replace("url(#", f"url(#{name}-")
    for tag in found.select("[href]"):
        tag["href"] = inside(tag["href"], name, names)
        if not tag["href"]:
            del tag["href"]
    for tag in found.select("details"):
        tag["open"] = ""
    found.name, found["class"], found["id"] = "section", "page", name
    return found


def inside(link: str, name: str, names: list[str]) -> str:
    """The ``link`` of the page ``name`` as it is in the PDF; "" if it is to a file that is not in it."""
    if re.match(r"\w+:", link):
        return link
    file, _, part = link.partition("#")
    page = file.removesuffix(".html") or name
    return "" if page not in names else f"#{page}-{part}" if part else f"#{page}"


def whole(site: Path, names: list[str]) -> str:
    """The HTML of the book, which lies in the site's folder for its style sheets and scripts."""
    text = {name: (site / f"{name}.html").read_text("utf-8") for name in names}
    front = BeautifulSoup(text[names[0]], "html.parser")
    head = [
        *front.select("head link[rel=stylesheet]"),
        *(tag for tag in front.select("script") if MATHJAX.search(str(tag))),
    ]
    articles = [article(text[name], name, names) for name in names]
    contents = [f'<li><a href="#{each["id"]}">{each.h1.decode_contents()}</a></li>' for each in articles]
    return WHOLE.format(
        title=front.title.get_text().split("—")[-1].strip(),
        head="\n".join(map(str, head)),
        contents="\n".join(contents),
        pages="\n".join(map(str, articles)),
    )


def print_to(pdf: Path, html: str) -> None:
    """Print the ``html`` of a file that would lie beside the ``pdf``."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("the PDF is printed by chromium, which is not on the PATH: apt-get install chromium")
    source = pdf.with_name(".whole.html")
    source.write_text(html, encoding="utf-8")
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page()
            page.set_default_timeout(0)  # a busy machine may take as long as it needs
            page.goto(source.as_uri())
            page.evaluate("window.MathJax && MathJax.startup.promise")
            page.pdf(
                path=pdf,
                format="A4",
                scale=0.8,
                margin=dict.fromkeys(("top", "bottom", "left", "right"), "18mm"),
                display_header_footer=True,
                header_template="<span></span>",
                footer_template='<p style="font-size: 8px; width: 100%; text-align: center" class="pageNumber"></p>',
                outline=True,
                tagged=True,  # an outline needs it, and so does who has the file read aloud
            )
            browser.close()
    finally:
        source.unlink()


def main() -> None:
    names = pages_of((BOOK / "_toc.yml").read_text())
    missing = [name for name in names if not (SITE / f"{name}.html").is_file()]
    if missing:
        raise SystemExit(f"not in {SITE}: {', '.join(missing)}. Build the site first: make book")
    pdf = SITE / "ringzero.pdf"
    print_to(pdf, whole(SITE, names))
    print(f"The book as one file: {pdf} ({pdf.stat().st_size / 1e6:.0f} MB)")


if __name__ == "__main__":
    main()
