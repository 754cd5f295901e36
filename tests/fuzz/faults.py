"""Faults to put into random programs (``programs``), each of which makes one rank differ from the others.

A fault replaces an expression, a line or a phase of a correct program, and states what the first sentence of the error
must say about it: which ranks are to blame, and at which lines ranks stand.
"""

import random
from dataclasses import dataclass, replace

from tests.fuzz.programs import CALLS, SIZES, WORLD_SIZES, Code, Program, Ring, Site, pair

SMALLER = {"float64": "float32", "int64": "int32", "float32": "bfloat16", "int32": "uint8", "bfloat16": "uint8"}
ROOTED = ("broadcast", "reduce", "gather", "scatter", "ringzero broadcast", "ringzero reduce")


@dataclass(frozen=True)
class Fault:
    """Phases of a program, without (``healthy``) and with the fault (``sick``), and what the error must say.

    The sentence must name exactly the ``culprits`` first. If ``mutual``, the records cannot show which of the culprits
    is at fault, and the sentence may begin with some of them. For each claim ``(ranks, marks)`` the sentence must name
    one or more of these ranks, and no others, together with a line that bears one of the marks.
    """

    healthy: list
    sick: list
    culprits: set
    claims: list
    mutual: bool = False


def one_against_rest(phase, sick, rank, mine, theirs):
    """``rank`` differs in ``phase``, in which the other ranks agree. Of two ranks, either may be blamed."""
    return one_of(phase.ranks, rank, mine, theirs, [phase], [sick])


def one_of(group, rank, mine, theirs, healthy, sick):
    """The fault in which ``rank`` of ``group`` stands at the marks ``mine`` and the other ranks at ``theirs``."""
    mutual = len(group) == 2
    others = set(group if mutual else range(max(WORLD_SIZES))) - {rank}
    return Fault(healthy, sick, set(group) if mutual else {rank}, [({rank}, mine), (others, theirs)], mutual)


def absent(site):
    """One rank leaves a collective out."""
    phase = site.collective(times=1)
    site.repeat(phase)
    rank = site.rng.choice(phase.ranks)
    sick = replace(phase, guard=f"rank != {rank}")
    return one_against_rest(phase, sick, rank, site.next(rank), phase.marks)


def different_collective(site):
    """One rank calls another collective."""
    phase = site.collective(style="plain", times=1)
    rank = site.rng.choice(phase.ranks)
    # Some of ringzero's collectives exchange the same messages, so calling one for the other does not hang.
    pairs = {"ringzero all_reduce": ["ringzero reduce_scatter", "ringzero all_gather"]}
    same = {"reduce_scatter": "reduce_scatter_single", "reduce_scatter_single": "reduce_scatter"}
    kinds = [k for k in CALLS if not k.startswith("ringzero") and k not in (phase.kind, same.get(phase.kind))]
    other = replace(
        phase, name=site.name(), kind=site.rng.choice(kinds + pairs.get(phase.kind, [])), guard=f"rank == {rank}"
    )
    sick = Code(phase.name, phase.ranks, "\n".join([*replace(phase, guard=f"rank != {rank}").lines(), *other.lines()]))
    return one_against_rest(phase, sick, rank, other.marks, phase.marks)


def reordered(site):
    """One rank calls two collectives in the opposite order."""
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
    """One rank's tensor is larger or smaller, in the direction that gloo refuses: it takes less than fits."""
    phase = site.collective(kinds=SIZED, style="plain", times=1)
    rank = site.rng.choice(phase.ranks)
    larger = site.rng.choice((True, False))
    root = int(phase.root)
    if phase.kind in ("broadcast", "gather"):  # from the root to all, or from all to the root
        larger = (rank == root) == (phase.kind == "broadcast")
    if phase.kind == "scatter":  # the room that others made is not recorded, so this rank or the root is to blame
        rank = site.rng.choice([r for r in phase.ranks if r != root])
        claims = [({rank}, phase.marks), ({root}, phase.marks)]
        return Fault([phase], [change(phase, rank, larger=False)], {rank, root}, claims, mutual=True)
    return one_against_rest(phase, change(phase, rank, larger), rank, phase.marks, phase.marks)


def different_shape(site):
    """One rank's tensor has more or fewer elements."""

    def change(phase, rank, larger):
        numel = int(phase.numel)
        return replace(phase, numel=f"{numel + 8 if larger else numel - 2} if rank == {rank} else {numel}")

    return _unlike(site, change)


def different_dtype(site):
    """One rank's tensor has elements of another size."""

    def change(phase, rank, larger):
        small, large = SMALLER[phase.dtype], phase.dtype
        mine, theirs = (large, small) if larger else (small, large)
        return replace(phase, dtype=f"torch.{mine} if rank == {rank} else torch.{theirs}")

    return _unlike(site, change)


def different_root(site):
    """One rank names another root."""
    phase = site.collective(kinds=[kind for kind in ROOTED if not kind.startswith("ringzero")], style="plain", times=1)
    rank = site.rng.choice(phase.ranks)
    # A rank that names itself, or the root when it names another, always hangs; other ranks may get the data anyway.
    other = rank if rank != int(phase.root) else site.rng.choice([r for r in phase.ranks if r != rank])
    sick = replace(phase, root=f"{other} if rank == {rank} else {phase.root}")
    return one_against_rest(phase, sick, rank, phase.marks, phase.marks)


def cycle(site):
    """Every rank of a ring sends before it receives, or receives before it sends."""
    ring = site.ring(times=1)
    sick = replace(ring, style=site.rng.choice(("all send", "all receive")))
    return Fault([ring], [sick], set(site.world), [({r}, ring.marks) for r in site.world], mutual=True)


def _alone(site, call):
    """One rank sends or receives a message that its peer does not expect. With two ranks either may be blamed."""
    rank, peer = site.rng.sample(site.world, 2)
    site.meet()
    name = site.name()
    size = site.rng.choice((3, 1_000_000))
    code = Code(name, (rank,), f"if rank == {rank}:\n    {call}(torch.ones({size}), {peer})  # @{name}")
    mutual = site.world_size == 2
    claims = [({rank}, code.marks)] + ([({peer}, site.next(peer))] if mutual else [])
    return Fault([], [code], {rank, peer} if mutual else {rank}, claims, mutual)


def receive_alone(site):
    """One rank receives what nobody sends."""
    return _alone(site, "dist.recv")


def send_alone(site):
    """One rank sends what nobody receives."""
    return _alone(site, "dist.send")


def wrong_peer(site):
    """The sender or the receiver of a message names a third rank."""
    while site.world_size < 3:
        site.__init__(site.rng)
    sender, receiver, third = site.rng.sample(site.world, 3)
    site.meet()
    name, size = site.name(), site.rng.choice(SIZES)
    wrong = site.rng.choice(({"to": third}, {"of": third}))
    healthy, sick = pair(name, sender, receiver, size), pair(name, sender, receiver, size, **wrong)
    claims = [({sender}, {f"{name}s"}), ({receiver}, {f"{name}r"})]
    return Fault([healthy], [sick], {sender if "to" in wrong else receiver}, claims)


def _leaves(site, statement):
    """One rank runs ``statement``, which ends its program: the rank, and the code."""
    while not site.after:
        site.__init__(site.rng)
    rank = site.rank()
    name = site.name()
    return rank, Code(name, (rank,), f"if rank == {rank}:\n    {statement}  # @{name}")


def early_return(site):
    """One rank returns before the others."""
    rank, code = _leaves(site, "return")
    return Fault([], [code], {rank}, [({rank}, site.last(rank)), *site.waiting(rank)])


def os_exit(site):
    """One rank's process exits with status 0."""
    rank, code = _leaves(site, "os._exit(0)")
    return Fault([], [code], {rank}, [({rank}, site.last(rank))])


def sys_exit(site):
    """One rank raises SystemExit."""
    rank, code = _leaves(site, "sys.exit(0)")
    return Fault([], [code], {rank}, [({rank}, code.marks)])


def livelock(site):
    """One rank computes for ever."""
    rank, name = site.rank(), site.name()
    loop = site.rng.choice((f"    while x.sum() > 0:  # @{name}\n        x = x.abs()  # @{name}",
                            f"    while True:  # @{name}\n        pass  # @{name}"))  # fmt: skip
    code = Code(name, (rank,), f"x = torch.ones(3)\nif rank == {rank}:\n{loop}")
    return Fault([], [code], {rank}, [({rank}, code.marks), *site.waiting(rank)])


def endless_sleep(site):
    """One rank sleeps for ever."""
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
    """One rank makes one iteration of a loop too many, or one too few."""
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
    """One rank makes one iteration too many."""
    return _steps(site, more=True)


def one_step_fewer(site):
    """One rank makes one iteration too few."""
    return _steps(site, more=False)


def group_of_some(site):
    """One member does not create a subgroup: the program's last one, because torch takes a later group for it."""
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
    """The ``number``-th random correct program: one that a fault could be put into, without the fault."""
    rng = random.Random(number)
    site = Site(rng)
    groups = dict(site.groups)
    fault = rng.choice(list(FAULTS.values()))(site)
    groups = {name: f"dist.new_group({list(ranks)})" for name, ranks in site.members.items()}
    return Program(number, site.world_size, (*site.before, *fault.healthy, *site.after), groups)
