"""Does ``ringzero explain`` name the right rank, from what gloo's own recorder kept of a program that hangs?

    python -m tests.fuzz.dumps --programs 300 --correct 300

The programs are those of ``faults``. No recorder of ours sees them: ranks are forked from here, run the program on a
plain gloo group and dump torch's Flight Recorder. Beside each answer stands that of torch's own analysis of the same
files, ``torchfrtrace``: as they are, and with the groups' ranks written into them, which gloo leaves out.
"""

import argparse
import contextlib
import io
import itertools
import logging
import os
import pickle
import re
import shutil
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

os.environ["TORCH_FR_BUFFER_SIZE"] = "2000"

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

import ringzero  # noqa: F401  the programs import it, and a forked rank need not
from ringzero import processes
from ringzero.dumps import explain
from tests.fuzz.diagnosis import statements
from tests.fuzz.faults import FAULTS, correct, faulty

LOOK, STILL = 0.1, 1.0  # seconds between looks at the ranks, and how long none may have moved before they dump
BURNT = 0.6  # seconds of a core after which a rank that runs is in an endless loop: the programs compute nothing
UNSEEN = (
    "different_root",
    "cycle",
    "receive_alone",
    "send_alone",
    "wrong_peer",
    "never_waited",
    "group_of_some",
)  # it keeps neither roots, messages nor new_group
SEEN = [fault for fault in FAULTS if fault not in UNSEEN]  # gloo's recorder keeps collectives alone
MESSAGES = re.compile(r"ringzero\.\w+\(|dist\.\w*(send|recv)|batch_isend")  # ringzero's collectives are made of them


def cases(kinds, count):
    """``count`` cases ``(kind, number)``, all kinds equally often, of programs whose recorded part shows the fault.

    Those are programs without messages. A correct one, and one whose fault is a message, may have them.
    """
    found = {kind: [] for kind in kinds}
    for kind, number in itertools.product(kinds, range(100 * count)):
        enough = len(found[kind]) >= -(-count // len(kinds))
        if not enough and (kind not in SEEN or not MESSAGES.search(program_of(kind, number)[0].source)):
            found[kind].append((kind, number))
    return [case for some in itertools.zip_longest(*found.values()) for case in some if case][:count]


def program_of(kind, number):
    return faulty(kind, number) if kind != "correct" else (correct(number), None)


def dump(kind, number, folder):
    """Run a program and leave its ranks' dumps in ``folder``, once no rank moves any more."""
    program, _ = program_of(kind, number)
    reader, writer = os.pipe()  # closed when it is time to dump
    # A store on the network: who waits for one in a file looks again and again, and so seems to move.
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ranks = [_fork(program, rank, folder, store.port, reader, writer) for rank in range(program.world_size)]
    os.close(reader)
    looks, before = 0, None
    while looks < STILL / LOOK:
        time.sleep(LOOK)
        now = [_moved(pid) for pid in ranks]
        looks = looks + 1 if now == before and "moving" not in now else 0
        before = now
    os.close(writer)
    for pid in ranks:
        os.waitpid(pid, 0)


def _moved(pid):
    """What changes while a thread of the process moves; "moving" while one wants a core, until it burnt for long."""
    try:
        states = [
            Path(task, "stat").read_text().rpartition(")")[2].split() for task in Path(f"/proc/{pid}/task").iterdir()
        ]
    except OSError:
        return "moving"  # a thread has just ended
    ticks = sum(int(state[11]) + int(state[12]) for state in states)
    if ticks > BURNT * os.sysconf("SC_CLK_TCK"):
        return "burns"
    return "moving" if any(state[0] in "RD" for state in states) else ticks


def _fork(program, rank, folder, port, reader, writer):
    pid = os.fork()
    if pid == 0:
        try:
            processes.die_with_parent()
            os.close(writer)
            _be_a_rank(program, rank, folder, port, reader)
        finally:
            os._exit(1)
    return pid


def _be_a_rank(program, rank, folder, port, reader):
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    torch.set_num_threads(1)
    threading.Thread(target=_dump_once_closed, args=(reader, Path(folder, f"rank_{rank}")), daemon=True).start()
    store = dist.TCPStore("127.0.0.1", port, is_master=False)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=program.world_size, timeout=timedelta(hours=1))
    namespace = {"__name__": "program"}
    exec(compile(program.source, program.file, "exec"), namespace)
    with contextlib.suppress(BaseException):
        namespace["main"]()
    threading.Event().wait()  # for the dump


def _dump_once_closed(reader, file):
    os.read(reader, 1)
    file.write_bytes(_dump_fr_trace())
    os._exit(0)


def ours(folder, world_size):
    """``(ranks to look at, what was said)`` by ``ringzero explain``."""
    found = explain([folder], world_size)
    return found.ranks, found.sentence


def torchs(folder, mend):
    """``(ranks that torchfrtrace names first, what it said)``; None for the ranks if it ended with an error."""
    from torch.distributed.flight_recorder.components import builder, config_manager, fr_logger, loader

    heard = io.StringIO()
    handler = logging.StreamHandler(heard)
    logger = fr_logger.FlightRecorderLogger().logger
    logger.addHandler(handler)
    logger.propagate = False
    for other in logger.handlers[:-1]:
        logger.removeHandler(other)
    try:
        arguments = config_manager.JobConfig().parse_args(
            [str(folder), "--prefix", "rank_", "--allow-incomplete-ranks"]
        )
        details, version = loader.read_dir(arguments)
        if mend:
            _mend(details)
        builder.build_db(details, arguments, version)
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        logger.removeHandler(handler)
    said = heard.getvalue()
    first = re.search(r"missing ranks: (\{.*?\})|error msg: (.*)", said)
    if first is None:
        return [], said
    numbers = re.findall(r"\d+", first[1]) if first[1] else re.findall(r"Culprit rank (\d+)", first[2])
    return sorted({int(number) for number in numbers}), said


def _mend(details):
    """Write into the dumps which ranks each group has: all for the default group, else those that used it."""
    users = {}
    for each in details.values():
        for entry in each["entries"]:
            users.setdefault(tuple(entry["process_group"]), set()).add(each["rank"])
    world = range(len(details))
    for each in details.values():
        each["pg_config"] = {
            name: {"name": name, "desc": text, "ranks": str(sorted(world if text == "default_pg" else ranks))}
            for (name, text), ranks in users.items()
        }


def blames(ranks, fault):
    """Whether ``ranks`` are the culprits."""
    if not ranks:
        return False
    return set(ranks) <= fault.culprits if fault.mutual else set(ranks) == fault.culprits


def lines_are_right(said, program, fault):
    """Whether ranks that are said to wait or to have called something stand at the fault's lines."""
    for about, lines in statements(re.sub(r" after .*?(;|$)", r"\1", said), program.file):
        marks = set().union(*(marks for ranks, marks in fault.claims if about <= ranks))
        if lines and marks and not lines & program.lines_of(marks):
            return False
    return True


class Verdict(NamedTuple):
    """Of a faulty program "right" or "wrong", of a correct one "right" or "accused"; torch's may be "error".

    Ours is "not in it" where the dumps hold no trace of the fault, and nobody was accused.

    ``stock`` is torch's of the files as they are, ``mended`` of those with the groups' ranks.
    """

    ours: str
    said: str
    stock: str
    mended: str


def judge(case):
    """The Verdict on one program."""
    program, fault = program_of(*case)
    folder = tempfile.mkdtemp(prefix="rz-dumps-")
    try:
        dump(*case, folder)
        ranks, said = ours(folder, program.world_size)
        right = _word(ranks, fault)
        if right == "right" and fault and "no record" not in said and not lines_are_right(said, program, fault):
            right = "wrong"
        if right == "wrong" and not ranks and shows_nothing(folder, program.world_size):
            right = "not in it"
        return Verdict(right, said, *(_word(torchs(folder, mend)[0], fault) for mend in (False, True)))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shows_nothing(folder, world_size):
    """Whether all ranks left dumps, and these are the same but for times and lines, and all operations ended.

    So they are if a rank hangs where nobody needs it any more, or everybody waits in a message.
    """
    left = [pickle.loads(file.read_bytes())["entries"] for file in Path(folder).glob("rank_*")]
    same = [
        {
            group: [
                (each["profiling_name"], each["input_sizes"] or each["output_sizes"], each["input_dtypes"])
                for each in entries
                if each["process_group"] == group
            ]
            for group in {each["process_group"] for each in entries}
        }
        for entries in left
    ]
    alike = all(mine[group] == other[group] for mine in same for other in same for group in mine.keys() & other.keys())
    return len(left) == world_size and alike and all(each["retired"] for entries in left for each in entries)


def _word(ranks, fault):
    if ranks is None:
        return "error"
    if fault is None:
        return "accused" if ranks else "right"
    return "right" if blames(ranks, fault) else "wrong"


def judge_all(some, jobs):
    """What ``judge`` says of each case, in order; ``jobs`` programs at once, because most only wait."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=processes.die_with_parent) as executor:
        yield from executor.map(judge, some)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=300, help="programs with a fault that collectives show")
    parser.add_argument(
        "--unseen", type=int, default=0, help="programs with a fault that gloo's recorder does not keep"
    )
    parser.add_argument("--correct", type=int, default=300, help="programs without")
    parser.add_argument("--jobs", type=int, default=4, help="programs at once")
    options = parser.parse_args()
    some = cases(SEEN, options.programs) + cases(UNSEEN, options.unseen) + cases(["correct"], options.correct)
    verdicts = []
    for case, verdict in zip(some, judge_all(some, options.jobs), strict=True):
        verdicts.append(verdict)
        print(f"{len(verdicts)} {case} {verdict.ours} {verdict.stock} {verdict.mended}", flush=True)
        if verdict.ours not in ("right", "not in it"):
            fault = program_of(*case)[1]
            print(
                f"{case}: {verdict.ours}, the fault is of {fault.culprits if fault else 'none'}: {verdict.said}",
                flush=True,
            )
    words = (
        ("ours", "right"),
        ("ours", "not in it"),
        ("stock", "right"),
        ("stock", "error"),
        ("mended", "right"),
        ("mended", "error"),
    )
    print(f"{'fault':<24}{'programs':>9}" + "".join(f"{' '.join(each):>15}" for each in words))
    for kind in dict.fromkeys(kind for kind, _ in some):
        mine = [verdict for case, verdict in zip(some, verdicts, strict=True) if case[0] == kind]
        counts = [sum(getattr(verdict, whose) == word for verdict in mine) for whose, word in words]
        print(f"{kind.replace('_', ' '):<24}{len(mine):>9}" + "".join(f"{count:>15}" for count in counts))


if __name__ == "__main__":
    main()
