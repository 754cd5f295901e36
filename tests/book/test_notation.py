"""One letter, one meaning: the table of the notation page against the letters in the formulas of all chapters."""

import re
from pathlib import Path

import pytest

BOOK = Path(__file__).resolve().parents[2] / "book"
CHAPTERS = {}  # by number: the pages of each, such as 06_, 06b_ and 06c_
for _page in sorted(BOOK.glob("[0-9][0-9]*_*.md")):
    CHAPTERS.setdefault(int(_page.name[:2]), []).append(_page)
LOWER = "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega ell"
UPPER = "Gamma Delta Theta Lambda Xi Sigma Phi Psi Omega"
NAMES = {*LOWER.split(), *UPPER.split()}  # commands that are letters
NUMBERS = {"e", r"\pi"}


def formulas(text):
    """What stands between dollars, outside of code; answers and admonitions count."""
    text = re.sub(r"^---\n.*?\n---\n", "", text, flags=re.S)
    keep = r"`{3,}\{(dropdown|admonition|list-table|note|tip|warning)"
    fenced = r"^(`{3,})[^`\n]*\n.*?^\1$"  # closed by as many marks as open it: an admonition may hold an answer
    text = re.sub(fenced, lambda m: m[0] if re.match(keep, m[0]) else "", text, flags=re.S | re.M)
    text = re.sub(r"`[^`\n]*`", "", text)
    return [a or b for a, b in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", text, flags=re.S)]


def symbols(formula, indexed=()):
    """Letters of a formula. A letter with an index is one symbol if it is among the ``indexed``."""
    formula = re.sub(r"\\(text|operatorname|mathrm|mathbf|begin|end)\s*\{[^}]*\}", " ", formula)
    found = set()
    for symbol in indexed:  # one indexed by any rank or protocol stands for all
        pattern = re.sub(r"_[a-z]$", "_[a-z]", re.escape(symbol))
        formula, times = re.subn(pattern + r"(?![A-Za-z])", " ", formula)
        if times:
            found.add(symbol)
    for command, letter in re.findall(r"\\([A-Za-z]+)|([A-Za-z])", formula):
        if letter or command in NAMES:
            found.add(letter or "\\" + command)
    return found


def table():
    """Of the notation page: ``[(symbols of a row, chapters or None for all)]``, and the letters of no page."""
    text = (BOOK / "notation.md").read_text().split("## Words")[0]
    rows = []
    for line in text.splitlines():
        if line.startswith("| $"):
            first, _, _, where = (cell.strip() for cell in line.strip("|").split("|"))
            names = first.strip("$").split("=")[0]
            chapters = None if where == "all" else {int(number) for number in where.split(",")}
            rows.append(([name.strip() for name in re.split(r",\\?", names)], chapters))
    (free,) = re.findall(r"The letters \$([^$]+)\$ have no fixed meaning", text)
    return rows, {name.strip() for name in re.split(r",\\?", free)}


ROWS, FREE = table()
WHERE = {name: chapters for names, chapters in ROWS for name in names}
INDEXED = [name for name in WHERE if "_" in name]


def used(chapter):
    found = [formula for page in CHAPTERS[chapter] for formula in formulas(page.read_text())]
    return set().union(*(symbols(formula, INDEXED) for formula in found)) - NUMBERS - FREE


def test_the_table_has_each_symbol_once():
    names = [*(name for row, _ in ROWS for name in row), *FREE]
    assert sorted(names) == sorted(set(names))
    assert len(names) > 40


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_uses_letters_as_the_table_has_them(chapter):
    known = {name for name, chapters in WHERE.items() if chapters is None or chapter in chapters}
    assert used(chapter) - known == set(), "not in the table of the notation page"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_table_names_no_chapter_that_lacks_the_letter(chapter):
    promised = {name for name, chapters in WHERE.items() if chapters is not None and chapter in chapters}
    assert promised - used(chapter) == set(), "the notation page names this chapter"


def test_the_letters_of_a_formula():
    assert symbols(r"2\frac{N-1}{N}\Psi + m_1 \text{ for } m", ["m_1"]) == {"N", r"\Psi", "m_1", "m"}
    assert symbols("a_q - a_p", ["a_p"]) == {"a_p"}
    assert symbols(r"\hat m_{12} \cdot \lambda_2", [r"\lambda_2"]) == {"m", r"\lambda_2"}
    assert formulas("a `$x$` $y$\n```\n$z$\n```\n```{dropdown} Answer\n$u$\n```\n") == ["y", "u"]
    nested = "````{admonition} Quick check\n$x$?\n```{dropdown} Answer\n$y$\n```\n````\n\n$z$\n\n```\n$u$\n```\n"
    assert formulas(nested) == ["x", "y", "z"]
