"""Programs at random, in search of one that trains wrongly without a word.

    python -m tests.peers.hunt --programs 500 --seed 7
    python -m tests.peers.hunt --program "DDP | 2 ranks | sgd | double | linear | window, step"

Says what came of them, how often which sentence refused one, and of failures of each kind one that is made short.
Exit status 1 if one was silently wrong, hung, or broke off with an error that is not ours.
"""

import argparse
import json
import sys
import tempfile
from collections import Counter

from tqdm import tqdm

from tests.peers import programs as of
from tests.peers.programs import CRASH, FAILED, HANG, REFUSED, RIGHT, SILENT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=100)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--trainer", default="", help="only trainers whose names begin so: DDP,ZeRO-1")
    parser.add_argument("--program", action="append", help="run this one instead")
    parser.add_argument("--json", help="write what came of each into this file")
    parser.add_argument("--device", default="cpu", help='"strict" for the rules of NCCL; "cuda:0" for ranks on a GPU')
    parser.add_argument("--ranks", type=int, default=5, help="only programs of at most so many: 2 on two GPUs")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for 25 programs")
    parser.add_argument("--keep", action="store_true", help="do not make failures short")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.programs)
    programs = [*map(of.parsed, options.program)] if options.program else [of.drawn(options.seed, n) for n in numbers]
    programs = [each for each in programs if each.trainer.startswith(tuple(options.trainer.split(",")))]
    programs = [each for each in programs if each.ranks <= options.ranks]
    outcomes, short = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for first in tqdm(range(0, len(programs), 100), disable=len(programs) <= 100):
            some = programs[first : first + 100]
            outcomes += of.run_all(some, folder, options.timeout, options.device, tell=tell)
        report(programs, outcomes)
        if not options.keep:
            short = explained(programs, outcomes, folder, options.device)
    if options.json:
        rows = [{"program": str(p), "outcome": o, "why": why} for p, (o, why) in zip(programs, outcomes, strict=True)]
        shown = [{"program": str(p), "outcome": outcome, "why": why} for p, outcome, why in short]
        with open(options.json, "w") as file:
            json.dump({"programs": rows, "short": shown}, file, indent=1)
    sys.exit(any(outcome in FAILED for outcome, _ in outcomes))


def tell(program, outcome, why):
    if outcome in FAILED:
        print(f"{outcome}: {program}\n    {why[:300]}", flush=True)


def report(programs, outcomes):
    counts = Counter(outcome for outcome, _ in outcomes)
    print(", ".join(f"{counts[each]} {each}" for each in (RIGHT, REFUSED, SILENT, HANG, CRASH)))
    refused = {}
    for program, (outcome, why) in zip(programs, outcomes, strict=True):
        if outcome == REFUSED:
            refused.setdefault(of.kind_of(why), []).append(program)
    for sentence, those in sorted(refused.items(), key=lambda each: -len(each[1])):
        print(f"refused: {len(those)} x {sentence}\n    such as: {min(those, key=lambda each: len(str(each)))}")


def explained(programs, outcomes, folder, device):
    """``[(program, outcome, why)]`` made short: of failures one of each kind.

    Where a short program is a part of a longer one that failed likewise, under a trainer of its family, it is why.
    """
    short = []
    failed = [each for each in zip(programs, outcomes, strict=True) if each[1][0] in FAILED]
    for program, (outcome, why) in sorted(failed, key=lambda each: len(str(each[0]))):
        if not any(is_part(other, program) and outcome == its for other, its, _ in short):
            short.append(shorter(program, outcome, why, folder, device))
            print("short: ", end="")
            tell(*short[-1])
            print(f"    of: {program}", flush=True)
    return short


def is_part(program, whole):
    same_family = program.trainer[:4] == whole.trainer[:4]
    has_parts = all(part == "linear" or part in whole.parts for part in program.parts)
    same_precision = program.precision in ("double", whole.precision)
    return same_family and same_precision and has_parts and not Counter(program.moves) - Counter(whole.moves)


def shorter(program, outcome, why, folder, device):
    last = [(program, outcome, why)]

    def fails(other):
        [came] = of.run_all([other], folder, 20.0, device)
        if came[0] == outcome:
            last[0] = other, *came
        return came[0] == outcome

    of.shrunk(program, fails)
    return last[0]


if __name__ == "__main__":
    main()
