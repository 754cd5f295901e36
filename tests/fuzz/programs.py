"""Random programs for ranks: Python source, a list of phases (collectives, rings, pairs of messages).

Every value in a phase is a Python expression, so that a fault (``faults``) can make it depend on the rank. A line that
communicates ends in a comment, its mark, by which a claim about an error refers to the line.
"""

import re
from dataclasses import dataclass, field, replace
from functools import cached_property

WORLD_SIZES = (2, 3, 3, 4, 4, 5)
DTYPES = ("float64", "float32", "int64", "int32", "bfloat16")
SIZES = (3, 24, 24, 100, 5000)  # elements; a size that comes often, so that a skipped call can go unnoticed for long
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
    """Any other lines; those that communicate bear marks."""

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
    """The ``number``-th program of its kind, for ``world_size`` ranks."""

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
        return pair(self.name(), *self.rng.sample(self.world, 2), self.rng.choice(SIZES))

    def slow(self):
        return Code(self.name(), (), f"if rank == {self.rank()}:\n    time.sleep({self.rng.uniform(0.05, 0.3):.2f})")

    def rank(self):
        return self.rng.choice(self.world)

    def meet(self):
        """Let a collective of all ranks follow, so that no later message can be taken for one of this phase."""
        if self.after:
            self.after.insert(0, self.collective("None", MEETINGS))

    def repeat(self, phase):
        """Perhaps call the same again from another line, so that one call too few or too many shows only later."""
        if self.rng.random() < 0.3:
            self.after.insert(0, replace(phase, name=self.name(), times="1", style="plain"))

    def next(self, rank):
        """The marks of the lines where ``rank`` can be after the site: up to the first that no rank leaves alone."""
        marks = set()
        for phase in self.after:
            if rank in phase.ranks:
                marks |= phase.marks
            if self.is_meeting(phase):
                break
        return marks

    def is_meeting(self, phase):
        """Whether no rank leaves the phase before all have entered it. A call in ``add_up`` may match one elsewhere."""
        for_all = isinstance(phase, Collective) and phase.ranks == self.world
        return for_all and phase.kind in MEETINGS and phase.style != "nested"

    def last(self, rank):
        """The marks of the last phase before the site that ``rank`` takes part in."""
        return next(phase.marks for phase in reversed(self.before) if rank in phase.ranks)

    def waiting(self, rank):
        """The claim about the ranks that wait for ``rank``, which never comes."""
        return [(set(self.world) - {rank}, self.next(rank))]


def pair(name, sender, receiver, size, to=None, of=None):
    return Code(
        name,
        (sender, receiver),
        f"x = torch.ones({size})\n"
        f"if rank == {sender}:\n    dist.send(x, {receiver if to is None else to})  # @{name}s\n"
        f"if rank == {receiver}:\n    dist.recv(x, {sender if of is None else of})  # @{name}r",
    )
