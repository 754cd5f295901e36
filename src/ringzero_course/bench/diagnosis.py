"""Does the explanation of a stuck call name the right rank and line? Random programs, each with one known fault.

``ringzero bench diagnosis`` runs them (``fuzz.faults``), and correct programs, in which no rank may be blamed.
"""

import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.util import Finalize

import click

from ringzero import processes
from ringzero_course.bench import options, results
from ringzero_course.fuzz.faults import FAULTS, correct, faulty
from ringzero_course.fuzz.programs import WORLD_SIZES

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
    """In each process: it and its ranks end with the benchmark, also when that is killed."""
    from ringzero.ranks import pool

    processes.die_with_parent()
    Finalize(None, pool.stop, exitpriority=0)  # a process of multiprocessing ends without running atexit
    pool.acquire(max(WORLD_SIZES))


@click.command("diagnosis")
@click.option("--programs", default=200, show_default=True, help="Programs with a fault.")
@click.option("--correct", "healthy", default=1000, show_default=True, help="Programs without.")
@click.option("--jobs", default=3, show_default=True, help="Programs at once.")
@options.json_option
def command(programs, healthy, jobs, json_file):
    """Random programs with one known fault each: are the rank and the line named? Is a correct one accused?"""
    cases = faults_and_numbers(programs) + [("correct", number) for number in range(healthy)]
    verdicts = list(options.progress(judge_all(cases, jobs), len(cases)))
    click.echo(f"{'fault':<24} {'programs':>8} {'named right':>12}")
    rows = []
    for kind in [*FAULTS, "correct"]:
        mine = [verdict for case, (verdict, _) in zip(cases, verdicts, strict=True) if case[0] == kind]
        right = mine.count("right")
        if kind == "correct":
            click.echo(f"{'all':<24} {programs:>8} {sum(row['ours'] for row in rows):>12}")
            click.echo(f"{'none':<24} {healthy:>8} {healthy - right:>12} false alarms")
            rows.append(_row("none", "false alarms", healthy - right, healthy))
        else:
            click.echo(f"{kind.replace('_', ' '):<24} {len(mine):>8} {right:>12}")
            rows.append(_row(kind, "named right", right, len(mine)))
    for (kind, number), (verdict, text) in zip(cases, verdicts, strict=True):
        if verdict != "right":
            click.echo(f"{kind} {number}: {verdict}: {first_sentence(text)}")
    results.write(rows, json_file)


def _row(name, metric, count, of):
    return results.row(name, metric, count, None, None, f"of {of} programs")  # no peer names a rank and a line
