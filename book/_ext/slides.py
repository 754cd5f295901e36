"""A deck of slides for each chapter, made from the page that was built: there is no second text to keep.

    python book/_ext/slides.py          decks of all chapters, into _build/html/slides

What a page marks becomes a slide: its title with what one can do afterwards, the question that it opens with, each
figure and table under the heading of its section, the quick checks with folded answers, the causes of misses, and what
to remember. Figures and numbers are those of the page's run, and moving figures move. A deck opens from a disk.
"""

import re
from html import escape
from pathlib import Path

from bs4 import BeautifulSoup, Tag

SITE = Path(__file__).resolve().parents[2] / "_build/html"
FIGURES = ".rz-figure, .rz-explore, .rz-stepper, .rz-calculator, .rz-writing"
OURS = re.compile(r"_static/(calculator|engine|explore|play|stepper|write|mathjax)|window\.MathJax")
DECK = """<!doctype html>
<html lang="en" data-theme="light">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: slides</title>
{head}
<link rel="stylesheet" href="../_static/slides.css"><script defer src="../_static/slides.js"></script>
</head>
<body><main class="bd-content bd-article">
{slides}
</main>
<nav aria-label="Slides"><button type="button" data-by="-1">Back</button> <output></output>
<button type="button" data-by="1">Next</button></nav>
</body></html>
"""


def deck(page: str, name: str) -> str:
    """The HTML of a deck, in a folder of the site, from that of the page ``name``."""
    soup = BeautifulSoup(page, "html.parser")
    for link in soup.select("a.headerlink"):
        link.decompose()
    for tag in soup.select("a[href], link[href], script[src]"):
        key = "src" if tag.name == "script" else "href"
        if not re.match(r"\w+:", tag[key]):
            tag[key] = f"../{name}.html{tag[key]}" if tag[key].startswith("#") else f"../{tag[key]}"
    head = soup.select("head link[rel=stylesheet]")
    head += [script for script in soup.select("script") if OURS.search(str(script))]
    made = "\n".join(f'<section class="slide">{slide}</section>' for slide in slides(soup.select_one("article")))
    return DECK.format(title=escape(soup.h1.get_text()), head="\n".join(map(str, head)), slides=made)


def slides(article: Tag) -> list[str]:
    """What is shown, slide by slide."""
    can = article.find("ul")
    opening = can.find_next_sibling("p")
    made = [f"{article.h1}{can.find_previous_sibling('p')}{can}", f"<h2>Guess first</h2>{opening}"]
    for part in article.select("div.cell_output, div.admonition"):
        section = part.find_parent("section")
        heading = section.find(re.compile("h[1-6]")).decode_contents()
        if "admonition" in part["class"]:
            title = part.select_one(".admonition-title").get_text(strip=True)
            if {"quiz", "why"} & set(part["class"]) or title == "Remember":
                made.append(f"<h2>{heading}</h2>{part}")
        elif not part.find_parent(is_no_slide):
            made += [f"<h2>{heading}</h2>{shown}" for shown in one_by_one(part)]
    return made


def one_by_one(cell: Tag) -> list[str]:
    """What a cell put out, cut before each figure after the first. None if it drew none."""
    cuts, drawn = [""], 0
    for piece in cell.select(":scope > .output > *"):
        figures = bool(piece.css.match(FIGURES))
        cuts += [""] if figures and drawn else []
        drawn += figures
        cuts[-1] += f'<div class="{" ".join(piece.parent["class"])}">{piece}</div>'
    return [f'<div class="{" ".join(cell["class"])}">{cut}</div>' for cut in cuts] if drawn else []


def is_no_slide(tag: Tag) -> bool:
    """What holds figures that are folded, that belong to a box, or that answer an exercise."""
    return tag.name == "details" or "admonition" in tag.get("class", ()) or tag.get("id") == "exercises"


def main() -> None:
    pages = sorted(path for path in SITE.glob("[0-9]*.html"))
    if not pages:
        raise SystemExit(f"no chapters in {SITE}: make book")
    (SITE / "slides").mkdir(exist_ok=True)
    for path in pages:
        (SITE / "slides" / path.name).write_text(deck(path.read_text("utf-8"), path.stem), encoding="utf-8")
    print(f"{len(pages)} decks in {SITE / 'slides'}")


if __name__ == "__main__":
    main()
