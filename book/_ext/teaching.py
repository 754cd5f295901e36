"""What a chapter or a lab says of itself at its start: what it needs, and what its reader can do afterwards.

A chapter says it below its title, a lab in its first cell:

    *You need [what a collective costs](03_what_a_collective_costs.md) first. …*

    After this page you can

    - tell what a link carries from what the caller sees (check 2)

Each line ends with what shows it: a quick check or an exercise of the page, or a cell of a lab. Nothing else says these
things. The build makes the links, the tables and the map of them, and adds up the minutes of a plan.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringzero.drawing import palette, svg
from ringzero.drawing.figure import picture

NEEDS = re.compile(r"You need (.*?)\bfirst\b", re.DOTALL)
CAN = re.compile(r"\bAfter this (?:page|lab) you can\n\n((?:- .*\n(?:  .*\n)*)+)")
LINE = re.compile(r"(?P<can>.*) \((?P<shown>(?:check|exercise) \d+|(?:lab \d+, )?`\w+`)\)")
ROW, COLUMN, RADIUS = 17, 13, 5  # pixels, of the map


@dataclass(frozen=True)
class Unit:
    """A chapter or a lab. ``needs`` are names of others; ``can`` is (what its reader can do, what shows it)."""

    name: str  # "6b" or "lab 4"
    title: str
    file: str  # without its suffix
    needs: tuple[str, ...]
    can: tuple[tuple[str, str], ...]

    @property
    def is_lab(self) -> bool:
        return self.name.startswith("lab")


def number(file: str) -> str:
    """Of a chapter or lab, by its file.

    >>> number("06b_awkward_cases"), number("10_offload")
    ('6b', '10')
    """
    return file.split("_")[0].removeprefix("0") or "0"


def chapter(file: str, text: str) -> Unit:
    title = re.search(r"^# \w+ · (.*)$", text, re.MULTILINE)[1]
    needs = [number(page) for page in re.findall(r"\]\((\d\w+)\.md\)", NEEDS.search(text)[1])]
    return Unit(number(file), title, file, tuple(needs), _can(text))


def lab(file: str, text: str) -> Unit:
    """``text`` is the solution's, whose cells of text are comments."""
    first = re.sub(r"^# ?", "", text.split("# %% [markdown]\n")[1].split("\n# %%")[0], flags=re.MULTILINE) + "\n"
    chapters, _, labs = re.search(r"You need (chapters? .*?) first\.", first)[1].partition("lab")
    needs = [*re.findall(r"\d+\w?", chapters), *(f"lab {other}" for other in re.findall(r"\d+", labs))]
    return Unit(f"lab {number(file)}", re.search(r"^# (.*)$", first, re.MULTILINE)[1], file, tuple(needs), _can(first))


def _can(text: str) -> tuple[tuple[str, str], ...]:
    found = CAN.search(text)
    lines = re.split(r"^- ", re.sub(r"\n  ", " ", found[1]), flags=re.MULTILINE)[1:] if found else []
    wrong = [line for line in lines if not LINE.fullmatch(line.strip())]
    if wrong:
        raise ValueError(f"{wrong[0].strip()!r} does not end with what shows it, such as (check 1) or (lab 2, `name`)")
    return tuple(LINE.fullmatch(line.strip()).group("can", "shown") for line in lines)


def units(book: Path) -> list[Unit]:
    """All, each after those that it needs: chapters in the book's order, a lab as soon as it can be done."""
    labs = [lab(path.stem, path.read_text("utf-8")) for path in sorted((book.parent / "solutions").glob("[0-9]*.py"))]
    ordered: list[Unit] = []
    for path in sorted(book.glob("[0-9]*.md")):
        ordered.append(chapter(path.stem, path.read_text("utf-8")))
        known = {unit.name for unit in ordered}
        for each in labs:
            if each.name not in known and set(each.needs) <= known:
                ordered.append(each)
                known.add(each.name)
    if left_out := [each for each in labs if each not in ordered]:
        raise ValueError(f"{left_out[0].name} needs {left_out[0].needs}, which are not all there")
    return ordered


def lab_minutes(text: str) -> int:
    """What a lab takes at most, by its first cell.

    >>> lab_minutes("# About 100 to 130 minutes. Wherever …"), lab_minutes("# About 90 minutes.")
    (130, 90)
    """
    return int(re.search(r"About (?:\d+ to )?(\d+) minutes", text)[1])


# ---- in a chapter: its lines lead to what shows them


def linked(page: str, text: str) -> str:
    """A chapter whose checks and exercises have names, and whose lines at the start are links to these."""
    count = iter(range(1, 99))

    def name_check(found: re.Match) -> str:
        return f"{found[0]}:name: check-{next(count)}-of-{page}\n"

    def link_each(found: re.Match) -> str:
        return re.sub(r"\((\w+ \d+)\)$", lambda end: f"({link(page, end[1])})", found[0], flags=re.MULTILINE)

    text = CAN.sub(link_each, re.sub(r"^`{3,}\{admonition\} Quick check\n", name_check, text, flags=re.MULTILINE))
    before, heading, after = text.partition("\n## Exercises\n")
    named = re.sub(r"^\*\*(\d+)\.\*\*", rf"(exercise-\1-of-{page})=\n\g<0>", after, flags=re.MULTILINE)
    return before + heading + named


def link(page: str, shown: str) -> str:
    """To a check or an exercise of the page; a cell of a lab is on no page and stays as it is."""
    return shown if "`" in shown else f"{{ref}}`{shown} <{shown.replace(' ', '-')}-of-{page}>`"


# ---- on the pages for instructors


def table(some: Sequence[Unit]) -> str:
    """What a reader can do after each unit, and what shows it."""
    rows = [f"| {'lab' if some[0].is_lab else 'chapter'} | after it one can | shown by |", "|---|---|---|"]
    for unit in some:
        head = f"{unit.name}: {unit.title}" if unit.is_lab else f"[{unit.name} {unit.title}]({unit.file}.md)"
        for can, shown in unit.can:
            rows.append(f"| {head} | {can} | {link(unit.file, shown)} |")
            head = ""
    return "\n".join(rows)


def direct(some: Sequence[Unit]) -> dict[str, tuple[str, ...]]:
    """The needs of each unit by name, without those that another need has already."""
    of = {unit.name: unit.needs for unit in some}

    def all_of(name: str) -> set[str]:
        return {need for first in of[name] for need in {first} | all_of(first)}

    return {
        name: tuple(need for need in needs if not any(need in all_of(other) for other in needs))
        for name, needs in of.items()
    }


def needed_by_none(some: Sequence[Unit]) -> str:
    """The chapters that no other chapter needs, as links."""
    needed = {need for unit in some if not unit.is_lab for need in unit.needs}
    return ", ".join(f"[{unit.name}]({unit.file}.md)" for unit in some if not unit.is_lab and unit.name not in needed)


def drawn(some: Sequence[Unit]) -> str:
    """The map as HTML: a unit a row, each further right. A line goes down from what is needed, then to the right."""
    place = {unit.name: (8 + COLUMN * i, 12 + ROW * i) for i, unit in enumerate(some)}
    lines, dots, says = [], [], []
    for unit in some:
        x, y = place[unit.name]
        for need in direct(some)[unit.name]:
            above = place[need]
            lines.append(svg.path(f"M{above[0]} {above[1]}V{y - 4}q0 4 4 4H{x}", stroke_width=0.7))
        fill = palette.ORANGE if unit.is_lab else palette.SKY
        dots.append(svg.disc((x, y), RADIUS, fill, stroke_width=0.5))
        dots.append(svg.text(x + 9, y, f"{unit.name} {unit.title}", bold=unit.is_lab, halo=True))
        says.append(f"{unit.name} needs {', '.join(unit.needs) or 'none'}")
    width = max(place[u.name][0] + 12 + svg.LETTER * len(f"{u.name} {u.title}") * 1.05 for u in some)
    figure = picture(
        width,
        ROW * len(some) + 10,
        "What needs what",
        "; ".join(says),
        lines + dots,
        "Follow a line from a dot to the left and up: that is needed first. Needs of needs are not drawn again. "
        "Labs are bold, with an orange dot.",
    )
    return f"```{{raw}} html\n{figure.html}\n```"


def seminar(text: str) -> str:
    """The parts of the seminar's page as a table."""
    parts = re.findall(r"^## Minutes (\d+) to (\d+): (.*)$", text, re.MULTILINE)
    rows = [f"| {start} to {end} | {what} | {int(end) - int(start)} |" for start, end, what in parts]
    return "\n".join(["| minutes | what | how long |", "|---|---|---|", *rows])


def added_up(text: str) -> str:
    """In each table: ``{hours of the row}`` from the "N min" of that row, and ``{hours of all rows}`` from these.

    >>> print(added_up("| a | 40 min | 50 min | {hours of the row} |\\n| all | | | {hours of all rows} |"))
    | a | 40 min | 50 min | 1.5 |
    | all | | | 1.5 |
    """
    lines, total = text.split("\n"), 0
    for i, line in enumerate(lines):
        if "{hours of the row}" in line:
            minutes = sum(int(said) for said in re.findall(r"\b(\d+) min\b", line))
            total += minutes
            lines[i] = line.replace("{hours of the row}", f"{minutes / 60:.1f}")
        elif "{hours of all rows}" in line:
            lines[i], total = line.replace("{hours of all rows}", f"{total / 60:.1f}"), 0
    return "\n".join(lines)


def filled(text: str, book: Path) -> str:
    """A page whose tokens ``TOKENS`` are replaced by what they stand for, except those of minutes."""
    for token, made in TOKENS.items():
        if token in text:
            text = text.replace(token, made(book))
    return text


TOKENS: Mapping[str, Callable[[Path], str]] = {
    "{table of chapters}": lambda book: table([unit for unit in units(book) if not unit.is_lab]),
    "{table of labs}": lambda book: table([unit for unit in units(book) if unit.is_lab]),
    "{map of needs}": lambda book: drawn(units(book)),
    "{chapters that no other needs}": lambda book: needed_by_none(units(book)),
    "{parts of the seminar}": lambda book: seminar((book / "seminar.md").read_text("utf-8")),
}
