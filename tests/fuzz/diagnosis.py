"""Does the explanation of a stuck call name the right rank and line? Random programs, each with one known fault.

    python -m tests.fuzz.diagnosis --programs 200 --correct 1000

Runs them (``faults``), and correct programs, in which no rank may be blamed. ``tests/explain`` runs some.
"""

import argparse
import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.util import Finalize

from tqdm import tqdm

from ringzero import processes
from tests.fuzz.faults import FAULTS, correct, faulty
from tests.fuzz.programs import WORLD_SIZES

SECONDS = 3.0  # for a program that hangs in a way no record proves, such as an endless loop
PATIENCE = 600.0  # for a correct one


def first_sentence(message):
    """Of what an error says; a traceback counts as one sentence."""
    message = re.sub(r"^\d+ ranks were .*? s: ", "", message)
    return re.split(r"\.\s|\n\n", message)[0]


def statements(sentence, file):
    """``[(ranks, lines)]``: the ranks that each part of the sentence is about, and the lines of ``file`` it names."""
    parts = []
    for part in re.split(r"; |: (?=rank)|, where |, but |, while |, which |\.\s", sentence):
        ranks = re.search(r"ranks? (\d+(?:, \d+)*)", part)
        lines = {int(line) for line in re.findall(rf'{re.escape(file)}"?,? line (\d+)', part)}
        parts.append(({int(rank) for rank in ranks[1].split(", ")} if ranks else set(), lines))
    return [part for part in parts if part[0]]


def is_right(message, program, fault):
    """Whether the first sentence of ``message`` names the culprits first, and every claim's ranks at its lines."""
    said = statements(first_sentence(message), program.file)
    if not said:
        return False
    opening = said[0][0]
    if not (opening <= fault.culprits if fault.mutual else opening == fault.culprits):
        return False
    return all(
        any(about <= ranks and lines & program.lines_of(marks) for about, lines in said)
        for ranks, marks in fault.claims
        if marks
    )


def judge(case):
    """``(verdict, text)`` for the program of ``case``, a fault's name (or "correct") and a number.

    With a fault: "right", "wrong", or "no hang" if it ended without an error. Correct: "right", or "accused" if it
    ended with an error, or ``diagnose`` blames a rank for what its records say.
    """
    from ringzero import RankError

    kind, number = case
    program, fault = faulty(kind, number) if kind != "correct" else (correct(number), None)
    try:
        trace = program.run(SECONDS if fault else PATIENCE).trace
    except RankError as error:
        return ("accused" if not fault else "right" if is_right(str(error), program, fault) else "wrong"), str(error)
    accusation = None if fault else _accusation(trace, program.world_size)
    return "no hang" if fault else "accused" if accusation else "right", accusation or ""


def _accusation(trace, world_size):
    from ringzero.explain.diagnose import diagnose
    from ringzero.explain.state import RankState

    return diagnose([RankState("returned", [op for op in trace if op.rank == rank]) for rank in range(world_size)])


def faults_and_numbers(programs):
    """``programs`` cases, ``(fault, number)``, with all faults equally often."""
    return [(list(FAULTS)[i % len(FAULTS)], i // len(FAULTS)) for i in range(programs)]


def judge_all(cases, jobs):
    """What ``judge`` says of each case, in order. Most programs only wait, so ``jobs`` processes run some at a time."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start) as executor:
        yield from executor.map(judge, cases)


def _start():
    """In each process: it and its ranks end with this program, also when that is killed."""
    from ringzero.ranks import pool

    processes.die_with_parent()
    Finalize(None, pool.stop, exitpriority=0)  # a process of multiprocessing ends without running atexit
    pool.acquire(max(WORLD_SIZES))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200, help="programs with a fault")
    parser.add_argument("--correct", type=int, default=1000, help="programs without")
    parser.add_argument("--jobs", type=int, default=3, help="programs at once")
    options = parser.parse_args()
    cases = faults_and_numbers(options.programs) + [("correct", number) for number in range(options.correct)]
    verdicts = list(tqdm(judge_all(cases, options.jobs), total=len(cases)))
    print(f"{'fault':<24} {'programs':>8} {'named right':>12}")
    for kind in [*FAULTS, "correct"]:
        mine = [verdict for case, (verdict, _) in zip(cases, verdicts, strict=True) if case[0] == kind]
        print(f"{kind.replace('_', ' '):<24} {len(mine):>8} {mine.count('right'):>12}")
    for (kind, number), (verdict, text) in zip(cases, verdicts, strict=True):
        if verdict != "right":
            print(f"{kind} {number}: {verdict}: {first_sentence(text)}")


if __name__ == "__main__":
    main()
