"""``book/_ext/run_pages.py``: a page runs again when what it depends on has changed, and not otherwise."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jupyter_book")
ROOT = Path(__file__).resolve().parents[2]
PAGE = """---
jupytext: {{text_representation: {{extension: .md, format_name: myst}}}}
kernelspec: {{name: python3, display_name: Python 3}}
---
# A page

```{{code-cell}} python
{tags}{code}
```
"""
CONFIG = """title: a book
execute: {execute_notebooks: force, allow_errors: false, raise_on_error: true}
sphinx: {local_extensions: {run_pages: book/_ext}}
"""
FILES = {
    "_config.yml": CONFIG,
    "book/_toc.yml": "{format: jb-book, root: deep, chapters: [{file: named}, {file: data}]}",
    "src/ringzero/__init__.py": "",
    "src/ringzero/one/__init__.py": "",
    "src/ringzero/one/top.py": "from ringzero.two import below",
    "src/ringzero/one/other.py": "",
    "src/ringzero/two.py": "below = 1",
    "src/ringzero/three.py": "START = ('python', '-m', 'ringzero.four')",
    "src/ringzero/four.py": "",
    "src/ringzero/ranks/__init__.py": "",
    "src/ringzero/ranks/lending.py": "from contextlib import nullcontext as to_children",  # these pages have no ranks
    "book/numbers.json": "[1]",
    "book/deep.md": PAGE.format(
        tags=":tags: [measures]\n", code="def f():\n    import ringzero.one.top\nprint('printed', 6 * 7)"
    ),
    "book/named.md": PAGE.format(tags="", code="%time\nfrom ringzero import three"),
    "book/data.md": PAGE.format(tags="", code="open('numbers.json').read(), 'gpu/*.json'"),
}


class Book:
    def __init__(self, top):
        self.top = top
        for name, text in FILES.items():
            self.write(name, text)
        shutil.copytree(ROOT / "book/_ext", top / "book/_ext")

    def write(self, name, text):
        (self.top / name).parent.mkdir(parents=True, exist_ok=True)
        (self.top / name).write_text(text)

    def build(self):
        """The pages that ran."""
        jupyter_book = Path(sys.executable).with_name("jupyter-book")
        environment = os.environ | {"PYTHONPATH": str(self.top / "src")}
        done = subprocess.run(
            [jupyter_book, "build", "book/"], cwd=self.top, env=environment, capture_output=True, text=True, check=False
        )
        self.said, self.status = done.stdout + done.stderr, done.returncode
        return set(re.findall(r"(\w+) (?:ran|stopped) after", self.said))


def test_a_page_runs_when_what_it_depends_on_has_changed(tmp_path):
    book = Book(tmp_path)
    assert book.build() == {"deep", "named", "data"}, book.said
    assert "printed 42" in (tmp_path / "_build/html/deep.html").read_text()
    book.write("src/ringzero/two.py", "below = 2")  # imported by what "deep" imports, inside a function
    book.write("src/ringzero/four.py", "changed = 1")  # "named" imports what names it, in a text
    assert book.build() == {"deep", "named"}, book.said
    book.write("book/numbers.json", "[2]")
    book.write("book/deep.md", FILES["book/deep.md"].replace("6 * 7", "6 * 8"))
    assert book.build() == {"deep", "data"}, book.said
    book.write("book/gpu/a_card.json", "{}")  # the first that the pattern in "data" fits
    assert book.build() == {"data"}, book.said
    book.write("src/ringzero/one/other.py", "changed = 1")
    book.write("book/named.md", FILES["book/named.md"].replace("A page", "Another title"))
    shutil.rmtree(tmp_path / "_build/html")
    shutil.rmtree(tmp_path / "_build/.doctrees")
    assert book.build() == set(), book.said
    assert "printed 48" in (tmp_path / "_build/html/deep.html").read_text()
    assert len(list((tmp_path / "_build/executed").iterdir())) == 3


def test_a_page_that_fails_ends_the_build_and_runs_again(tmp_path):
    book = Book(tmp_path)
    book.write("book/named.md", FILES["book/named.md"].replace("from ringzero", "1 / 0 #"))
    assert "named" in book.build()
    assert book.status != 0
    assert "ZeroDivisionError" in book.said
    book.write("book/named.md", FILES["book/named.md"])
    assert book.build() == {"named"}
    assert book.status == 0, book.said


NOTED = """import time
begin = time.monotonic()
time.sleep({seconds})
with open("../cells", "a") as file:
    print(begin, time.monotonic(), {measures}, file=file)"""


def test_a_cell_that_measures_runs_alone(tmp_path):
    book = Book(tmp_path)
    for page, measures in {"named": (0, 1, 0), "data": (0, 0, 1), "deep": (1, 0, 0)}.items():
        cells = [NOTED.format(seconds=0.3, measures=each) for each in measures]
        tags = [":tags: [measures]\n" * each for each in measures]
        text = PAGE.format(tags=tags[0], code=cells[0])
        for tag, cell in zip(tags[1:], cells[1:], strict=True):
            text += f"\n```{{code-cell}} python\n{tag}{cell}\n```\n"
        book.write(f"book/{page}.md", text)
    assert book.build() == {"deep", "named", "data"}, book.said
    times = sorted(tuple(map(float, line.split())) for line in (tmp_path / "cells").read_text().splitlines())
    assert len(times) == 9
    for begin, end, measures in times:
        beside = [other for other in times if other[0] < end and begin < other[1] and other != (begin, end, measures)]
        assert not (measures and beside)
        assert not any(other[2] for other in beside)


CLOCKS = re.compile(r"perf_counter|process_time|thread_time|prediction\.compare|measure\(")
ALONE = re.compile(r"\A```\{code-cell\} python\n:tags: \[measures\b")


@pytest.mark.parametrize("page", sorted(path.name for path in (ROOT / "book").glob("[01]*.md")))
def test_each_cell_with_a_clock_measures_alone(page):
    cells = re.findall(r"^```\{code-cell\}.*?^```$", (ROOT / "book" / page).read_text(), re.M | re.S)
    for cell in cells:
        assert ALONE.match(cell) or not CLOCKS.search(cell), "give the cell the tag `measures`, the first of its tags"
