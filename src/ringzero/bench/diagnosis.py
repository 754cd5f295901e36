"""Does the explanation of a stuck call name the right rank and line? Random programs, each with one known fault.

A program is Python source: a list of phases (collectives, rings, pairs of messages) on a random number of ranks, every
value an expression. A fault makes one rank differ: it replaces an expression, a line or a phase, and knows what the
first sentence of the error must then say. ``ringzero bench diagnosis`` runs them, and correct programs, which nothing
may accuse.
"""

import random
import re
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing import get_context
from multiprocessing.util import Finalize

import click

from ringzero.bench import options

SECONDS = 3.0  # for a program that hangs in a way no record proves, such as an endless loop
PATIENCE = 60.0  # for a correct one
WORLD_SIZES = (2, 3, 3, 4, 4, 5)
DTYPES = ("float64", "float32", "int64", "int32", "bfloat16")
SMALLER = {"float64": "float32", "int64": "int32", "float32": "bfloat16", "int32": "uint8", "bfloat16": "uint8"}
SIZES = (3, 24, 24, 100, 5000)  # elements; a size that comes often, so that a skipped call can go unnoticed for long
ROOTED = ("broadcast", "reduce", "gather", "scatter", "ringzero broadcast", "ringzero reduce")
MEETINGS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "ringzero all_reduce")

_LIKE = "torch.empty_like(x) for _ in range({size})"
CALLS = {
    "all_reduce": "dist.all_reduce(x, group={group})",
    "broadcast": "dist.broadcast(x, {root}, group={group})",
    "reduce": "dist.reduce(x, {root}, group={group})",
    "all_gather": f"dist.all_gather([{_LIKE}], x, group={{group}})",
    "gather": f"dist.gather(x, [{_LIKE}] if rank == {{root}} else None, {{root}}, group={{group}})",
    "scatter": f"dist.scatter(x, [{_LIKE}] if rank == {{root}} else None, {{root}}, group={{group}})",
    "reduce_scatter": f"dist.reduce_scatter(x, [{_LIKE}], group={{group}})",
    "reduce_scatter_single": "reduce_scatter_single(x, x.repeat({size}), group={group})",
    "all_to_all": f"dist.all_to_all([{_LIKE}], [{_LIKE}], group={{group}})",
    "barrier": "dist.barrier(group={group})",
    "ringzero all_reduce": "ringzero.all_reduce(x, group={group})",
    "ringzero reduce_scatter": "ringzero.reduce_scatter(x, group={group})",
    "ringzero all_gather": "ringzero.all_gather(x, group={group})",
    "ringzero broadcast": "ringzero.broadcast(x, {members}.index({root}), group={group})",
    "ringzero reduce": "ringzero.reduce(x, {members}.index({root}), group={group})",
}
HEAD = """\
import os
import sys
import time

import ringzero
import torch
import torch.distributed as dist

reduce_scatter_single = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


def add_up(x, group):
    dist.all_reduce(x, group=group)  # @add_up
"""


# ---- programs


@dataclass(frozen=True)
class Collective:
    """One collective, perhaps in a loop. All fields but the first three are expressions or source."""

    name: str
    kind: str
    ranks: tuple
    group: str = "None"
    numel: str = "24"
    dtype: str = "float32"
    root: str = "0"
    times: str = "1"
    guard: str = ""  # the condition on which a rank calls it
    style: str = "plain"  # or "async", "nested"

    @property
    def marks(self):
        return {"add_up" if self.style == "nested" else self.name}

    def lines(self):
        call = f"add_up(x, {self.group})  # @{self.name}"
        if self.style != "nested":
            where = {"group": self.group, "size": len(self.ranks), "members": list(self.ranks)}
            call = CALLS[self.kind].format(root=f"({self.root})" if " " in self.root else self.root, **where)
            call += f"  # @{self.name}"
        lines = [call]
        if self.style == "async":
            lines = [
                f"work = {call.replace(')  #', ', async_op=True)  #')}",
                "y = x.new_ones(100).sum()",
                "work.wait()",
            ]
        if self.guard:
            lines = [f"if {self.guard}:", *_indented(lines)]
        if self.times != "1":
            lines = [f"for _ in range({self.times}):", *_indented(lines)]
        lines = [f"x = torch.ones({self.numel}, dtype={_torch(self.dtype)})", *lines]
        return lines if self.group == "None" else [f"if rank in {self.ranks}:", *_indented(lines)]


@dataclass(frozen=True)
class Ring:
    """Every rank sends to the next and receives from the one before."""

    name: str
    ranks: tuple
    numel: str
    dtype: str
    style: str
    times: str = "1"

    STYLES = {
        "isend": ("work = dist.isend(x, {next})", "dist.recv(y, {before})", "work.wait()"),
        "irecv": ("work = dist.irecv(y, {before})", "dist.send(x, {next})", "work.wait()"),
        "batch": (
            "sends = dist.P2POp(dist.isend, x, {next}), dist.P2POp(dist.irecv, y, {before})",
            "works = dist.batch_isend_irecv(list(sends))",
            "[work.wait() for work in works]",
        ),
        "all send": ("dist.send(x, {next})", "dist.recv(y, {before})"),
        "all receive": ("dist.recv(y, {before})", "dist.send(x, {next})"),
    }

    @property
    def marks(self):
        return {self.name}

    def lines(self):
        ends = {"next": f"(rank + 1) % {len(self.ranks)}", "before": f"(rank - 1) % {len(self.ranks)}"}
        lines = [f"{line.format(**ends)}  # @{self.name}" for line in self.STYLES[self.style]]
        if self.times != "1":
            lines = [f"for _ in range({self.times}):", *_indented(lines)]
        return [f"x, y = (torch.ones({self.numel}, dtype={_torch(self.dtype)}) for _ in range(2))", *lines]


@dataclass(frozen=True)
class Code:
    """Any other lines; those of them that communicate are marked."""

    name: str
    ranks: tuple
    code: str

    @property
    def marks(self):
        return set(re.findall(r"# @(\w+)$", self.code, re.MULTILINE))

    def lines(self):
        return self.code.splitlines()


@dataclass(frozen=True)
class Program:
    number: int
    world_size: int
    phases: tuple
    groups: dict = field(default_factory=dict)  # name -> the expression that makes it

    @cached_property
    def source(self):
        functions, body = [HEAD], []
        for phase in self.phases:
            lines = phase.lines()
            if isinstance(phase, Code) or (int(phase.name[1:]) + self.number) % 2:
                body += lines
            else:
                given = ", ".join(["rank", *self.groups])
                functions.append("\n    ".join([f"def phase_{phase.name}({given}):", *lines]))
                body.append(f"phase_{phase.name}({given})")
        main = ["def main():", "rank = dist.get_rank()"]
        main += [f"{name} = {value}  # @{name}" for name, value in self.groups.items()]
        functions.append("\n    ".join(main + body))
        return "\n\n\n".join(functions) + "\n"

    @property
    def file(self):
        return f"program_{self.number}.py"

    def lines_of(self, marks):
        """The numbers of the source lines that bear one of ``marks``."""
        return {
            number
            for number, line in enumerate(self.source.splitlines(), 1)
            if set(re.findall(r"# @(\w+)$", line)) & set(marks)
        }

    def run(self, timeout):
        from ringzero import launch

        namespace = {"__name__": "program"}
        exec(compile(self.source, self.file, "exec"), namespace)
        return launch(namespace["main"], world_size=self.world_size, timeout=timeout, trace=True)


def _indented(lines):
    return ["    " + line for line in lines]


def _torch(dtype):
    return dtype if " " in dtype else f"torch.{dtype}"


# ---- random programs


class Site:
    """A random correct program, cut in two: a fault goes between ``before`` and ``after``."""

    def __init__(self, rng):
        self.rng, self.names = rng, 0
        self.world_size = rng.choice(WORLD_SIZES)
        self.world = tuple(range(self.world_size))
        sizes = [rng.randint(2, self.world_size) for _ in range(rng.choice((0, 1, 2)))]
        self.members = {f"group_{i}": tuple(sorted(rng.sample(self.world, size))) for i, size in enumerate(sizes)}
        self.groups = {name: f"dist.new_group({list(ranks)})" for name, ranks in self.members.items()}
        kinds = rng.choices((self.collective, self.ring, self.pair, self.slow), (5, 2, 2, 1), k=rng.randint(2, 6))
        phases = [self.for_all(), *[make() for make in kinds], self.for_all()]
        cut = rng.randint(1, len(phases))
        self.before, self.after = phases[:cut], phases[cut:]

    def name(self):
        self.names += 1
        return f"p{self.names}"

    def collective(self, group=None, kinds=tuple(CALLS), times=None, style=None):
        rng = self.rng
        group = group or rng.choice(["None", "None", *self.members])
        kind = rng.choice(kinds)
        styles = ["plain", "plain", "nested" if kind == "all_reduce" else "async"]
        ranks = self.members.get(group, self.world)
        return Collective(
            self.name(),
            kind,
            ranks,
            group,
            numel=str(rng.choice(SIZES)),
            dtype=rng.choice(DTYPES),
            root=str(rng.choice(ranks)),
            times=str(times or rng.choice((1, 1, 1, 2, 4))),
            style=style or ("plain" if kind.startswith("ringzero") else rng.choice(styles)),
        )

    def for_all(self):
        return self.collective("None")

    def ring(self, times=None):
        rng = self.rng
        style, size, dtype = rng.choice(("isend", "irecv", "batch")), rng.choice(SIZES), rng.choice(DTYPES)
        return Ring(self.name(), self.world, str(size), dtype, style, str(times or rng.choice((1, 1, 3))))

    def pair(self):
        return _pair(self.name(), *self.rng.sample(self.world, 2), self.rng.choice(SIZES))

    def slow(self):
        return Code(self.name(), (), f"if rank == {self.rank()}:\n    time.sleep({self.rng.uniform(0.05, 0.3):.2f})")

    def rank(self):
        return self.rng.choice(self.world)

    def meet(self):
        """Have all ranks meet next, so that no message of a later phase can be taken for one of this."""
        if self.after:
            self.after.insert(0, self.collective("None", MEETINGS))

    def repeat(self, phase):
        """Perhaps have the same done once more from another line, so that a call too few or too many goes unnoticed."""
        if self.rng.random() < 0.3:
            self.after.insert(0, replace(phase, name=self.name(), times="1", style="plain"))

    def next(self, rank):
        """The marks of where ``rank`` can be after the site: up to the first call that all must enter to leave."""
        marks = set()
        for phase in self.after:
            if rank in phase.ranks:
                marks |= phase.marks
            if self.is_meeting(phase):
                break
        return marks

    def is_meeting(self, phase):
        """Whether nobody leaves it before all came. A call in ``add_up`` may pass for another one there."""
        for_all = isinstance(phase, Collective) and phase.ranks == self.world
        return for_all and phase.kind in MEETINGS and phase.style != "nested"

    def last(self, rank):
        return next(phase.marks for phase in reversed(self.before) if rank in phase.ranks)

    def waiting(self, rank):
        """The claim about those who wait for a rank that never comes."""
        return [(set(self.world) - {rank}, self.next(rank))]


def _pair(name, sender, receiver, size, to=None, of=None):
    return Code(
        name,
        (sender, receiver),
        f"x = torch.ones({size})\n"
        f"if rank == {sender}:\n    dist.send(x, {receiver if to is None else to})  # @{name}s\n"
        f"if rank == {receiver}:\n    dist.recv(x, {sender if of is None else of})  # @{name}r",
    )


# ---- faults


@dataclass(frozen=True)
class Fault:
    """What stands at the site, without (``healthy``) and with the fault, and what must be said of it.

    The sentence must open with exactly the ``culprits``; where ``mutual``, nothing tells who of them is at fault, and
    any may come first. Each claim ``(ranks, marks)`` must be made: some of these ranks, no others, at a marked line.
    """

    healthy: list
    sick: list
    culprits: set
    claims: list
    mutual: bool = False


def one_against_rest(phase, sick, rank, mine, theirs):
    """``rank`` differs in ``phase``, whose other ranks agree; of two ranks either may be the one that differs."""
    return one_of(phase.ranks, rank, mine, theirs, [phase], [sick])


def one_of(group, rank, mine, theirs, healthy, sick):
    mutual = len(group) == 2
    others = set(group if mutual else range(max(WORLD_SIZES))) - {rank}
    return Fault(healthy, sick, set(group) if mutual else {rank}, [({rank}, mine), (others, theirs)], mutual)


def absent(site):
    phase = site.collective(times=1)
    site.repeat(phase)
    rank = site.rng.choice(phase.ranks)
    sick = replace(phase, guard=f"rank != {rank}")
    return one_against_rest(phase, sick, rank, site.next(rank), phase.marks)


def different_collective(site):
    phase = site.collective(style="plain", times=1)
    rank = site.rng.choice(phase.ranks)
    # Some of ringzero's exchange the same messages and so do not hang.
    pairs = {"ringzero all_reduce": ["ringzero reduce_scatter", "ringzero all_gather"]}
    same = {"reduce_scatter": "reduce_scatter_single", "reduce_scatter_single": "reduce_scatter"}
    kinds = [k for k in CALLS if not k.startswith("ringzero") and k not in (phase.kind, same.get(phase.kind))]
    other = replace(
        phase, name=site.name(), kind=site.rng.choice(kinds + pairs.get(phase.kind, [])), guard=f"rank == {rank}"
    )
    sick = Code(phase.name, phase.ranks, "\n".join([*replace(phase, guard=f"rank != {rank}").lines(), *other.lines()]))
    return one_against_rest(phase, sick, rank, other.marks, phase.marks)


def reordered(site):
    first = site.collective(style="plain", times=1)
    same = {"reduce_scatter": "reduce_scatter_single", "reduce_scatter_single": "reduce_scatter"}
    kinds = [k for k in CALLS if k not in (first.kind, same.get(first.kind)) and not k.startswith("ringzero")]
    second = site.collective(first.group, kinds, style="plain", times=1)
    rank = site.rng.choice(first.ranks)
    again = replace(second, name=site.name())
    sick = [
        replace(again, guard=f"rank == {rank}"),
        first,
        replace(second, guard=f"rank != {rank}"),
    ]
    fault = one_against_rest(first, first, rank, again.marks, first.marks)
    return replace(fault, healthy=[first, second], sick=sick)


SIZED = ("all_reduce", "broadcast", "reduce", "all_gather", "gather", "reduce_scatter", "reduce_scatter_single",
         "all_to_all", "scatter", "ringzero all_reduce", "ringzero reduce_scatter")  # fmt: skip


def _unlike(site, change):
    """One rank's tensor is larger or smaller, where gloo takes notice: it lets the smaller go into the larger."""
    phase = site.collective(kinds=SIZED, style="plain", times=1)
    rank = site.rng.choice(phase.ranks)
    larger = site.rng.choice((True, False))
    root = int(phase.root)
    if phase.kind in ("broadcast", "gather"):  # from the root to all, or from all to the root
        larger = (rank == root) == (phase.kind == "broadcast")
    if phase.kind == "scatter":  # what the others made room for is not recorded: it is this rank or the root
        rank = site.rng.choice([r for r in phase.ranks if r != root])
        claims = [({rank}, phase.marks), ({root}, phase.marks)]
        return Fault([phase], [change(phase, rank, larger=False)], {rank, root}, claims, mutual=True)
    return one_against_rest(phase, change(phase, rank, larger), rank, phase.marks, phase.marks)


def different_shape(site):
    def change(phase, rank, larger):
        numel = int(phase.numel)
        return replace(phase, numel=f"{numel + 8 if larger else numel - 2} if rank == {rank} else {numel}")

    return _unlike(site, change)


def different_dtype(site):
    def change(phase, rank, larger):
        small, large = SMALLER[phase.dtype], phase.dtype
        mine, theirs = (large, small) if larger else (small, large)
        return replace(phase, dtype=f"torch.{mine} if rank == {rank} else torch.{theirs}")

    return _unlike(site, change)


def different_root(site):
    phase = site.collective(kinds=[kind for kind in ROOTED if not kind.startswith("ringzero")], style="plain", times=1)
    rank = site.rng.choice(phase.ranks)
    # A rank that takes itself for the root, or the root another, always hangs; others may get the data all the same.
    other = rank if rank != int(phase.root) else site.rng.choice([r for r in phase.ranks if r != rank])
    sick = replace(phase, root=f"{other} if rank == {rank} else {phase.root}")
    return one_against_rest(phase, sick, rank, phase.marks, phase.marks)


def cycle(site):
    ring = site.ring(times=1)
    sick = replace(ring, style=site.rng.choice(("all send", "all receive")))
    return Fault([ring], [sick], set(site.world), [({r}, ring.marks) for r in site.world], mutual=True)


def _alone(site, call):
    """A message with one end. The other ranks, if there are two or more, agree that it is one too many."""
    rank, peer = site.rng.sample(site.world, 2)
    site.meet()
    name = site.name()
    size = site.rng.choice((3, 1_000_000))
    code = Code(name, (rank,), f"if rank == {rank}:\n    {call}(torch.ones({size}), {peer})  # @{name}")
    mutual = site.world_size == 2
    claims = [({rank}, code.marks)] + ([({peer}, site.next(peer))] if mutual else [])
    return Fault([], [code], {rank, peer} if mutual else {rank}, claims, mutual)


def receive_alone(site):
    return _alone(site, "dist.recv")


def send_alone(site):
    return _alone(site, "dist.send")


def wrong_peer(site):
    while site.world_size < 3:
        site.__init__(site.rng)
    sender, receiver, third = site.rng.sample(site.world, 3)
    site.meet()
    name, size = site.name(), site.rng.choice(SIZES)
    wrong = site.rng.choice(({"to": third}, {"of": third}))
    healthy, sick = _pair(name, sender, receiver, size), _pair(name, sender, receiver, size, **wrong)
    claims = [({sender}, {f"{name}s"}), ({receiver}, {f"{name}r"})]
    return Fault([healthy], [sick], {sender if "to" in wrong else receiver}, claims)


def _leaves(site, statement):
    while not site.after:
        site.__init__(site.rng)
    rank = site.rank()
    name = site.name()
    return rank, Code(name, (rank,), f"if rank == {rank}:\n    {statement}  # @{name}")


def early_return(site):
    rank, code = _leaves(site, "return")
    return Fault([], [code], {rank}, [({rank}, site.last(rank)), *site.waiting(rank)])


def os_exit(site):
    rank, code = _leaves(site, "os._exit(0)")
    return Fault([], [code], {rank}, [({rank}, site.last(rank))])


def sys_exit(site):
    rank, code = _leaves(site, "sys.exit(0)")
    return Fault([], [code], {rank}, [({rank}, code.marks)])


def livelock(site):
    rank, name = site.rank(), site.name()
    loop = site.rng.choice((f"    while x.sum() > 0:  # @{name}\n        x = x.abs()  # @{name}",
                            f"    while True:  # @{name}\n        pass  # @{name}"))  # fmt: skip
    code = Code(name, (rank,), f"x = torch.ones(3)\nif rank == {rank}:\n{loop}")
    return Fault([], [code], {rank}, [({rank}, code.marks), *site.waiting(rank)])


def endless_sleep(site):
    rank, name = site.rank(), site.name()
    code = Code(name, (rank,), f"if rank == {rank}:\n    time.sleep(3600)  # @{name}")
    return Fault([], [code], {rank}, [({rank}, code.marks), *site.waiting(rank)])


def never_waited(site):
    """A handle of isend or irecv is dropped, which cancels the message, before the other end is there."""
    early, late = site.rng.sample(site.world, 2)
    name, size = site.name(), site.rng.choice(SIZES)
    start, end, again = site.rng.choice((("isend", "recv", "send"), ("irecv", "send", "recv")))
    code = (
        f"x = torch.ones({size})\n"
        f"if rank == {early}:\n    work = dist.{start}(x, {late})  # @{name}e\n"
        f"dist.barrier()  # @{name}\n"
        f"if rank == {late}:\n    dist.{end}(x, {early})  # @{name}l\n    dist.{end}(x, {early})  # @{name}l\n"
        f"if rank == {early}:\n    work.wait()\n    dist.{again}(x, {late})  # @{name}"
    )
    dropped = code.replace("work = ", "").replace("work.wait()", "pass")
    claims = [({early}, {f"{name}e"}), ({late}, {f"{name}l"})]
    return Fault([Code(name, site.world, code)], [Code(name, site.world, dropped)], {early}, claims)


def _steps(site, more):
    phase = site.rng.choice((site.collective, site.ring))(times=site.rng.randint(2, 4))
    if isinstance(phase, Ring):
        site.meet()
    else:
        site.repeat(phase)
    rank = site.rng.choice(phase.ranks)
    times = int(phase.times)
    sick = replace(phase, times=f"{times + 1 if more else times - 1} if rank == {rank} else {times}")
    rest = set(phase.ranks) - {rank}
    elsewhere = site.next(rank) if not more else set().union(*map(site.next, rest))
    mine, theirs = (phase.marks, elsewhere) if more else (elsewhere, phase.marks)
    return one_against_rest(phase, sick, rank, mine, theirs)


def one_step_more(site):
    return _steps(site, more=True)


def one_step_fewer(site):
    return _steps(site, more=False)


def group_of_some(site):
    """One member does not make the group: the last, since torch would take the next group for the one left out."""
    while not site.groups:
        site.__init__(site.rng)
    *_, name = site.groups
    rank = site.rng.choice(site.members[name])
    site.after, site.before = site.before + site.after, []
    site.groups[name] += f" if rank != {rank} else None"
    return one_of(site.members[name], rank, site.next(rank), {name}, [], [])


FAULTS = {
    fault.__name__: fault
    for fault in (
        absent,
        different_collective,
        reordered,
        different_shape,
        different_dtype,
        different_root,
        cycle,
        receive_alone,
        send_alone,
        wrong_peer,
        early_return,
        os_exit,
        sys_exit,
        livelock,
        endless_sleep,
        never_waited,
        one_step_more,
        one_step_fewer,
        group_of_some,
    )
}


def faulty(kind, number):
    """``(program, fault)``: the ``number``-th random program with a fault of this kind."""
    site = Site(random.Random(f"{kind} {number}"))
    fault = FAULTS[kind](site)
    return Program(number, site.world_size, (*site.before, *fault.sick, *site.after), site.groups), fault


def correct(number):
    """The ``number``-th random correct program: what stands at the site of some fault, before that fault."""
    rng = random.Random(number)
    site = Site(rng)
    groups = dict(site.groups)
    fault = rng.choice(list(FAULTS.values()))(site)
    groups = {name: f"dist.new_group({list(ranks)})" for name, ranks in site.members.items()}
    return Program(number, site.world_size, (*site.before, *fault.healthy, *site.after), groups)


# ---- the verdict


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

    With a fault: "right", "wrong", or "no hang" if it ended as if nothing were. Correct: "right", or "accused", whether
    by an error or, after it has run, by its records.
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
    from ringzero.launch.diagnose import RankState, diagnose

    operations = [[op for op in trace if op["rank"] == rank] for rank in range(world_size)]
    for op in trace:
        op["peer_rank"] = None if op["peer"] is None else op["members"][op["peer"]]
    return diagnose([RankState("returned", done) for done in operations])


# ---- the command


def faults_and_numbers(programs):
    """``programs`` cases, every fault as often as the next."""
    return [(list(FAULTS)[i % len(FAULTS)], i // len(FAULTS)) for i in range(programs)]


def judge_all(cases, jobs):
    """What ``judge`` says of each case, in order. Most programs only wait, so ``jobs`` processes run some at a time."""
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_start) as executor:
        yield from executor.map(judge, cases)


def _start():
    from ringzero.launch import pool

    Finalize(None, pool.stop, exitpriority=0)  # a process of multiprocessing's leaves without atexit
    pool.acquire(max(WORLD_SIZES))


@click.command("diagnosis")
@click.option("--programs", default=200, show_default=True, help="Programs with a fault.")
@click.option("--correct", "healthy", default=1000, show_default=True, help="Programs without.")
@click.option("--jobs", default=3, show_default=True, help="Programs at once.")
@options.json_option
def command(programs, healthy, jobs, json_file):
    """Random programs with one known fault each: are the rank and the line named? Is a correct one accused?"""
    from tqdm import tqdm

    cases = faults_and_numbers(programs) + [("correct", number) for number in range(healthy)]
    verdicts = list(tqdm(judge_all(cases, jobs), total=len(cases)))
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
    options.write(rows, json_file)


def _row(name, metric, count, of):
    nobody = dict.fromkeys(("peer", "peer_name", "ratio"))  # nothing else names a rank and a line
    return {"name": name, "metric": metric, "ours": count, **nobody, "unit": f"of {of} programs"}
