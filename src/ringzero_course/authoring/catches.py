"""Which claim of a check catches which wrong solution, read from the tables that the checks showed.

A claim that fails for a reason that another claim gave before ("as for ...") has caught nothing itself.
"""

import re
from typing import NamedTuple

TITLE = re.compile(r"^(\S.*?): [\d.]+ of [\d.]+ points")
ROW = re.compile(r"^  (pass|FAIL)  [\d.]+/[\d.]+  (.*)$")
ECHO = re.compile(r"^ +as for “")


class Outcome(NamedTuple):
    """A claim by name, with its function's before it; whether it holds; if not, whether for a reason of its own."""

    claim: str
    holds: bool
    catches: bool


def outcomes(text: str) -> list[Outcome]:
    """The claims of the tables in what a test cell showed, in order. Of several of one name the second is "(2)"."""
    found: list[Outcome] = []
    seen: dict[str, int] = {}
    function, lines = "", text.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        if title := TITLE.match(line):
            function = title[1]
        elif row := ROW.match(line):
            name = f"{function}: {row[2]}"
            seen[name] = seen.get(name, 0) + 1
            name += f" ({seen[name]})" if seen[name] > 1 else ""
            fails = row[1] == "FAIL"
            found.append(Outcome(name, not fails, fails and not ECHO.match(after)))
    return found


def by_claim(tables: dict[str, list[Outcome]]) -> dict[str, tuple[list[str], list[str]]]:
    """For each claim ``(wrong solutions that it catches, those that no other claim catches)``, by name.

    ``tables`` are the outcomes of each wrong solution in the cell that must catch it.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for name, rows in tables.items():
        catching = [row.claim for row in rows if row.catches]
        for row in rows:
            catches, alone = found.setdefault(row.claim, ([], []))
            if row.catches:
                catches.append(name)
            if catching == [row.claim]:
                alone.append(name)
    return found


def report(tables: dict[str, list[Outcome]]) -> str:
    """The claims as lines of text: how many wrong solutions each catches, and which ones it alone.

    At the end stand the claims that catch nothing at all, and how many catch nothing that no other catches: these are
    often one rule for several runs, of which students see some and the others keep lookups from passing.
    """
    found = by_claim(tables)
    lines = ["caught  alone  claim"]
    for claim, (catches, alone) in found.items():
        lines.append(f"{len(catches):6}  {len(alone):5}  {claim}")
        lines += [f"{'':15}  only this: {', '.join(alone)}"] if alone else []
    together = sum(not alone for _, alone in found.values())
    lines.append(f"{together} of {len(found)} claims catch nothing that no other catches")
    nothing = [claim for claim, (catches, _) in found.items() if not catches]
    lines += [f"{len(nothing)} catch nothing:", *(f"  {claim}" for claim in nothing)] if nothing else []
    return "\n".join(lines)
