"""How long a chapter takes to read: its prose with the exercises, the code that it shows, figures and quick checks.

What is folded away (harness cells) is not read. 110 words a minute is slow on purpose: this is technical prose, and
English need not be the reader's own language.
"""

import re

WORDS, LINES = 110, 15  # read in a minute: technical prose, and code
FIGURE, QUIZ, LISTING = 0.5, 1, 12  # minutes, minutes, lines of a library's excerpt
FENCED = re.compile(r"^(`{3,})([^\n`]*)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
DRAWN = re.compile(r"\b(blocks|chart|draw|explore|lanes|memory_timeline|spacetime|table|timeline|trade_off)\w*\(")


def minutes(text: str) -> float:
    """Of the text of a chapter.

    >>> minutes("word " * 110)
    1.0
    >>> shown = "```{code-cell} python\\n" + "x = 1\\n" * 15 + "```\\n"
    >>> minutes(shown), minutes(shown.replace("x = 1", ":tags: [hide-input]", 1))
    (1.0, 0.0)
    """
    lines = figures = quizzes = 0

    def prose_of(block: re.Match) -> str:
        nonlocal lines, figures, quizzes
        kind, inside = block[2], block[3]
        if kind.startswith("{code-cell}"):
            tags = re.match(r":tags: \[(.*)\]\n", inside)
            if tags and re.search("hide-input|remove-", tags[1]):
                figures += "remove-cell" not in tags[1] and bool(DRAWN.search(inside))
            else:
                lines += sum(bool(line.strip()) for line in inside.splitlines())
            return ""
        if kind.startswith("{literalinclude}"):
            lines += LISTING
            return ""
        if kind.startswith("{"):
            quizzes += ":class: quiz" in inside
            return FENCED.sub(prose_of, inside)
        lines += inside.count("\n")
        return ""

    read = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    words = len(FENCED.sub(prose_of, read).split())
    return words / WORDS + lines / LINES + FIGURE * figures + QUIZ * quizzes


def rounded(text: str) -> int:
    """To five minutes, as a page states them."""
    return 5 * round(minutes(text) / 5)
