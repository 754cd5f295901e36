"""Which mistake a failed check looks like: that of the wrong solutions whose tables read most like the student's.

A signature is the words of a table as the student may see it (``withheld``): nothing hidden is in ``signatures.json``,
and numbers do not count. ``signatures`` collects them; ``mistakes.json`` has the sentence for each mistake.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ringzero.grading import withheld

SIGNATURES, SENTENCES = (Path(__file__).parent / name for name in ("signatures.json", "mistakes.json"))
ONE_OF_A_KIND = "one_of_a_kind"  # the label of a wrong solution whose mistake no other shares: never named
NEAREST, LEAST_SIMILAR = 4, 0.25
_WORD = re.compile(r"[^\W\d_]{2,}")


@cache
def sentences() -> dict[str, str]:
    """``{mistake: sentence for the student}``."""
    return json.loads(SENTENCES.read_text())


@cache
def signatures() -> dict[tuple[str, str], tuple[str, frozenset[str]]]:
    """``{(lab, wrong solution): (mistake, features)}``."""
    stored = json.loads(SIGNATURES.read_text())
    return {
        (lab, name): (mistake, frozenset(stored["features"][i] for i in places))
        for lab, of_lab in stored["signatures"].items()
        for name, (mistake, places) in of_lab.items()
    }


def features(tables: Iterable[withheld.Table]) -> frozenset[str]:
    """What is compared, of tables without what is hidden: the words of their reasons, and pairs of these."""
    found: set[str] = set()
    for row in (row for table in tables for row in table.rows):
        if not row.holds:
            words = _WORD.findall(row.reason.split(" · ")[0].lower())
            found.update(words)
            found.update(f"{first} {second}" for first, second in zip(words, words[1:], strict=False))
    return frozenset(found)


def mistake(of: frozenset[str], without: object = None) -> str | None:
    """The mistake that the nearest signatures agree on, or None where they differ or are not near.

    ``without`` is the key of a signature that does not count.
    """
    near = nearest(of, without)
    names = {name for _, name in near}
    agree = len(names) == 1 and near[0][0] >= LEAST_SIMILAR and ONE_OF_A_KIND not in names
    return names.pop() if agree else None


def nearest(of: frozenset[str], without: object = None) -> list[tuple[float, str]]:
    """``(similarity, mistake)`` of the nearest signatures. Shared features count as much as they are rare."""
    every = signatures()
    common = Counter(feature for _, known in every.values() for feature in of & known)
    weight = {feature: math.log(1 + len(every) / (1 + common[feature])) for feature in of}
    # A feature that only the other has counts as one that is in a tenth of all: its own count changes little.
    other = math.log(11)

    def similarity(known):
        shared = sum(weight[x] for x in of & known)
        return shared / (sum(weight.values()) + other * len(known - of) or 1)

    found = ((similarity(known), name) for key, (name, known) in every.items() if key != without)
    return sorted(found, reverse=True)[:NEAREST]


def sentence(tables: list[withheld.Table]) -> str:
    """What a student reads about the tables of a cell, "This looks like: ...", or "" where it is not clear."""
    if all(row.holds for table in tables for row in table.rows):
        return ""
    found = mistake(features(tables))
    return f"This looks like: {sentences()[found]}. It may be something else." if found else ""


def leave_one_out() -> tuple[int, int, int]:
    """How many wrong solutions there are, for how many the others name a mistake, and for how many the right one."""
    every = signatures()
    named = {key: mistake(own, without=key) for key, (_, own) in every.items()}
    return len(every), sum(map(bool, named.values())), sum(named[key] == every[key][0] for key in every)


def collisions() -> tuple[int, int]:
    """How many different signatures there are, and how many of them several mistakes share."""
    shared: dict[frozenset[str], set[str]] = {}
    for name, own in signatures().values():
        shared.setdefault(own, set()).add(name)
    return len(shared), sum(len(names) > 1 for names in shared.values())


def report() -> str:
    """The measurement as a line of text."""
    total, named, right = leave_one_out()
    different, colliding = collisions()
    return (
        f"{total} wrong solutions, {different} signatures, {colliding} of them of several mistakes; each left out in "
        f"turn: a mistake is named for {named / total:.0%}, the right one for {right / max(1, named):.0%} of these"
    )
