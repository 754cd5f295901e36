"""Which mistake a failed check looks like: that of the wrong solutions whose tables read most like the student's.

A signature is the words of a table as the student may see it (``withheld``): nothing hidden is in ``signatures.json``,
and numbers do not count. ``signatures`` collects them. ``mistakes.json`` has the mistakes, by kind, with a sentence for
each mistake and each kind: where the tables do not say which mistake it is, they often say which kind.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from ringzero.grading import withheld

SIGNATURES, MISTAKES = (Path(__file__).parent / name for name in ("signatures.json", "mistakes.json"))
ONE_OF_A_KIND = "one_of_a_kind"  # the label of a wrong solution whose mistake no other shares: never named
AGREE = 4  # so many of the nearest signatures must be of one mistake for it to be named
VOTERS = 16  # so many of the nearest vote which kind it is
LEAST_SURE = 0.47  # the winner's share of the votes times the greatest similarity; below it no kind is named
_WORD = re.compile(r"[^\W\d_]{2,}")


@cache
def sentences() -> dict[str, str]:
    """``{mistake or kind: sentence for the student}``."""
    every = json.loads(MISTAKES.read_text())
    of_kinds = {kind: of["sentence"] for kind, of in every.items()}
    return {**of_kinds, **{name: text for of in every.values() for name, text in of["mistakes"].items()}}


@cache
def kinds() -> dict[str, str]:
    """``{mistake: its kind}``."""
    return {name: kind for kind, of in json.loads(MISTAKES.read_text()).items() for name in of["mistakes"]}


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
    """The mistake that the nearest signatures agree on, else the kind that most of them are of, else None.

    ``without`` is the key of a signature that does not count.
    """
    near = nearest(of, without)
    if not near:
        return None
    names = {name for _, name in near[:AGREE]}
    if len(names) == 1 and ONE_OF_A_KIND not in names:
        return names.pop()
    votes: defaultdict[str, float] = defaultdict(float)
    for similarity, name in near:
        votes[kinds().get(name, ONE_OF_A_KIND)] += similarity**2
    kind = max(votes, key=votes.__getitem__)
    sure = votes[kind] / sum(votes.values()) * near[0][0]
    return kind if sure >= LEAST_SURE and kind != ONE_OF_A_KIND else None


def nearest(of: frozenset[str], without: object = None) -> list[tuple[float, str]]:
    """``(similarity, mistake)`` of the nearest signatures: the cosine, where rare features weigh more."""
    every, weights, lengths = _weighed()
    unknown = math.log(1 + len(every))
    own = math.sqrt(sum(weights.get(feature, unknown) ** 2 for feature in of))
    found = []
    for key, (name, known) in every.items():
        both = sum(weights[feature] ** 2 for feature in of & known)
        if both and key != without:
            found.append((both / (own * lengths[key]), name))
    return sorted(found, reverse=True)[:VOTERS]


@cache
def _weighed():
    """The signatures, the weight of each feature, and the length of each signature with these weights."""
    every = signatures()
    common = Counter(feature for _, known in every.values() for feature in known)
    weights = {feature: math.log((1 + len(every)) / count) for feature, count in common.items()}
    lengths = {key: math.sqrt(sum(weights[x] ** 2 for x in known)) for key, (_, known) in every.items()}
    return every, weights, lengths


def looks_like(tables: Sequence[withheld.Table]) -> str:
    """What the tables of a test cell look like, as a sentence without a beginning; "" where that is not clear."""
    if all(row.holds for table in tables for row in table.rows):
        return ""
    return sentences().get(mistake(features(tables)) or "", "")


def leave_one_out() -> tuple[int, int, int]:
    """How many wrong solutions there are, for how many the others name a mistake or kind, and for how many rightly."""
    every = signatures()
    named = {key: mistake(own, without=key) for key, (_, own) in every.items()}
    right = sum(found in (every[key][0], kinds().get(every[key][0])) for key, found in named.items() if found)
    return len(every), sum(map(bool, named.values())), right


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
        f"turn: a mistake, or its kind, is named for {named / total:.0%}, "
        f"the right one for {right / max(1, named):.0%} of these"
    )
