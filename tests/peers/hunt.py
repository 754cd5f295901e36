"""Programs at random, in search of one that trains wrongly without a word.

    python -m tests.peers.hunt --programs 500 --seed 7
    python -m tests.peers.hunt --program "DDP | 2 ranks | sgd | double | linear | window, step"

Exit status 1 if one was silently wrong, hung, or broke off with an error that is not ours.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter

from tqdm import tqdm

from tests.peers.programs import (
    CRASH, HANG, NO_PROGRAM, REFUSED, RIGHT, SILENT, drawn, kind_of, parsed, run_all, run_some, shrunk,
)  # fmt: skip

FAILED = (SILENT, HANG, CRASH)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--program", action="append", help="run this one")
    parser.add_argument("--json", help="write what came of each into this file")
    parser.add_argument("--device", default="cpu", help='"strict" for rules of NCCL')
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for 25 programs")
    parser.add_argument("--keep", action="store_true", help="do not shrink")
    options = parser.parse_args()
    if options.program:
        programs = [parsed(text) for text in options.program]
    else:
        programs = [drawn(options.seed, options.first + number) for number in range(options.programs)]
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {}
        for i in tqdm(range(0, len(programs), 100), disable=len(programs) <= 100):
            some = run_all(programs[i : i + 100], folder, options.timeout, options.device)
            outcomes |= {i + place: outcome for place, outcome in some.items()}
        report(programs, outcomes)
        failed = {i: outcomes[i] for i in sorted(outcomes) if outcomes[i][0] in FAILED}
        short = (
            {}
            if options.keep
            else {i: shorter(programs[i], *failed[i], folder, options) for i in one_of_each(programs, failed)}
        )
    for i, (program, outcome, why) in short.items():
        print(f"\n{outcome}: {program}\n  {why}\n  of: {programs[i]}")
    if options.json:
        rows = [{"program": str(p), "outcome": outcomes[i][0], "why": outcomes[i][1]} for i, p in enumerate(programs)]
        shown = [{"program": str(p), "outcome": outcome, "why": why} for p, outcome, why in short.values()]
        with open(options.json, "w") as file:
            json.dump({"programs": rows, "shrunk": shown}, file, indent=1)
    sys.exit(bool(failed))


def report(programs, outcomes):
    counts = Counter(outcome for outcome, _ in outcomes.values())
    print(", ".join(f"{counts[each]} {each}" for each in (RIGHT, REFUSED, SILENT, HANG, CRASH, NO_PROGRAM)))
    sentences = Counter(kind_of(why) for outcome, why in outcomes.values() if outcome == REFUSED)
    for sentence, times in sentences.most_common():
        example = next(
            programs[i] for i in outcomes if outcomes[i][0] == REFUSED and kind_of(outcomes[i][1]) == sentence
        )
        print(f"refused: {times} x {sentence}\n    such as: {example}")


def one_of_each(programs, failed):
    """Of failures whose programs end in the same trainer and words, the shortest."""
    kinds = {}
    for i, (outcome, why) in failed.items():
        kinds.setdefault((outcome, programs[i].trainer, kind_of(why)[:40], programs[i].moves[:1]), []).append(i)
    return [min(some, key=lambda i: len(str(programs[i]))) for some in kinds.values()]


def shorter(program, outcome, why, folder, options):
    last = [(program, outcome, why)]

    def fails(other):
        came = run_some([(0, other)], other.ranks, folder, 30.0, options.device).get(0, ("", ""))
        if came[0] == outcome:
            last[0] = other, *came
        return came[0] == outcome

    shrunk(program, fails)
    return last[0]


if __name__ == "__main__":
    main()
