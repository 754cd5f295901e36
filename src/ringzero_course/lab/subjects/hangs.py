"""Lab 09, debug a hang: what functions must do that were mended, and what answers about the broken ones must say."""

import re
from collections.abc import Callable, Collection
from typing import Any

import torch

from ringzero.record.operation import Operation
from ringzero_course.lab.claims import collectives, numbers, one_of, sealed, traffic, values
from ringzero_course.lab.claims.answers import plain_number
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.harness import paper
from ringzero_course.lab.payloads import payloads
from ringzero_course.lab.runs import Claim, Run
from ringzero_course.lab.specification import Rows, of
from ringzero_course.lab.subjects import recorded
from ringzero_course.lab.unaided import unaided

NOT_INSIDE = -1  # of what torch calls the current graph task: no backward pass runs


# ---- answers: the name of an entry, what it is, the seal of the right one, and a hint

ANSWERS = {
    "report": """
        operation  the number of the all-reduce   3acab74e3249  it stands after the # in the report
        waiting    the ranks that wait there      b0388468e2f7  a list of ranks that did not return
        line       the line of that call          1e17c1771161  the report has it, one line further out""",
    "ring": """
        cycle    the two that wait for each other         b387a48c00a2  the report names them; a list
        sources  whom each rank tries to receive from     a0a4960b40a9  work it out for each of four ranks
        line     the line to change                       e59350dae70b  not the one that waits: what does it go by?""",
    "training": """
        worse  the first step worse than the start  3fbe1359d0c4  compare the right column with its first line, step 0
        times  how many times too long a step is    b2d3918b6a1f  divide one w by the other""",
    "models": """
        bytes_a_step  the bytes in one step     4c9fa1ec94be  rank 0's line is of three steps; add up one
        given         what the hook is given    da5396c943b9  let the hook print type(gradient).__name__""",
    "sums": """
        collective  the number of the collective  166477fb066b  it stands after the # in the report
        odd         the rank that stands alone    2641e807128b  the report names two parties
        bytes       the bytes it brought          42b48d972ffa  the report has them, for each party
        line        the line with the order   e534f5622461  not the one that waits: what does it go by?""",
    "dumps": """
        a     who is to blame in folder a    f3ee5851bb73  a list; who is unlike all others?
        b     who is to blame in folder b    3f2d0a56e0f1  which ranks used the other group? A list
        c     who is to blame in folder c    2e921e4185af  a list; whose file cannot be read?
        d     who is to blame in folder d    19538ff57c17  a list, empty if none: to wait is no fault
        last  to what that rank surely came  6dcf7792ef57  could it have ended without that rank?""",
}
IN_ANY_ORDER = ("waiting", "cycle", "a", "b", "c", "d")


def why(
    program: str,
    causes: Collection[str] = (),
    answers: dict[str, str] = ANSWERS,
    in_any_order: Collection[str] = IN_ANY_ORDER,
    chosen: Collection[str] = ("cause",),
) -> Callable[[Any], Rows]:
    """The specification of an answer about a broken program, and of its cause, if ``causes`` are to choose from.

    The right cause stands in the notebook's hidden lines. ``chosen`` are the answer's entries that name a cause.
    """

    def rows(check):
        said = check.run()
        if causes:
            text = "the cause is one of the list" if chosen == ("cause",) else "each fault is one of the list"
            check.that(text, said, all_of(*(one_of(name, causes) for name in chosen)), weight=0)
        for entry in answers[program].strip().splitlines():
            name, words, seal, hint = re.split("  +", entry.strip())
            check.that(words, said, sealed(name, seal, hint, ordered=name not in in_any_order))
        yield

    return rows


# ---- what is handed over


def noted(function: Callable, *tensor: Any, **case: Any) -> dict:
    """What a function returns and hands to the other ranks, and whether a backward pass ran meanwhile."""
    inside: list[bool] = []
    with payloads(lambda: inside.append(torch._C._current_graph_task_id() != NOT_INSIDE)) as sent:
        found = function(*tensor, **case)
    return {"returned": found, "given": sent, "inside": inside}


def all_reduces(count: Callable[[Run], int]) -> Claim:
    """A claim: each rank calls all_reduce so often, and nothing else. A single rank need not: nobody is there."""

    def claim(run):
        for rank, operations in enumerate(run.operations if run.world_size > 1 else ()):
            others = [op.kind for op in operations if op.kind != "all_reduce"]
            if others or len(operations) != count(run):
                also = f" and {others[0]}" if others else ""
                made = len(operations) - len(others)
                return f"rank {rank} called all_reduce {made} times{also}, expected {count(run)} times"
        return None

    return claim


# ---- 1. report


def rank_0_has_mean_and_distance(run: Run) -> str | None:
    last = torch.stack(run.inputs)[:, -1].double()
    right = last.mean().item(), (last - last.mean()).abs().mean().item()
    return numbers(("the mean", "the distance"), run.reports[0].returned, right, 1e-4)


def the_others_return_nothing(run: Run) -> str | None:
    found = [report.returned for report in run.reports]
    return next((f"rank {r} returned {x!r}" for r, x in enumerate(found) if r and x is not None), None)


each_step_and_once_more = all_of(
    rank_0_has_mean_and_distance,
    the_others_return_nothing,
    all_reduces(lambda run: (run.numel or 0) + 1),
    collectives.nothing_changes,
)


@of(harness=noted, built_from=("all_reduce",))
def report(check):
    six, others = check.run(numel=6), check.runs(ranks=(1, 3, 5), numel=5)
    right = all_of(rank_0_has_mean_and_distance, the_others_return_nothing)
    check.that("rank 0 returns the mean of the last loss and the distance, the others None", six, right, weight=3)
    check.that("and every rank calls all_reduce once a step and once more, no more", six, each_step_and_once_more)
    check.that("the same on 1, 3 and 5 ranks", others, each_step_and_once_more)
    draw = yield
    several = check.runs(ranks=range(1, 7), numel=lambda n: draw.randrange(2, 20))
    more = [check.run(numel=1), check.run(numel=draw.randrange(3, 9), dtype=torch.float64), check.run(numel=40)]
    check.that("1 to 6 ranks; 1 step, 40 steps, float64", [*several, *more], right, weight=3)
    check.that("as many calls on any number of ranks", [*several, *more], each_step_and_once_more)


# ---- 2. ring_all_reduce, which is a collective

RING = [
    ("every message goes to a neighbour on the ring", traffic.neighbours_only),
    ("each rank sends 2(N−1)/N of the buffer", traffic.sends_as_little_as("all_reduce", "ring")),
    traffic.NO_DEADLOCK,
]


# ---- 3. and 4. train, and train_with_hooks


def in_one_process(parts, parameters, loss_of, lr, steps, zeroed=True):
    """Gradient descent on the mean over the ranks' ``parts`` (x, y); gradients add up unless they are ``zeroed``.

    It gives all parameters at the end, and for each step each rank's loss before it and its gradients.
    """
    losses, gradients, kept = [], [], [torch.zeros_like(p) for p in parameters]
    for _ in range(steps):
        of_ranks = [loss_of(x, y) for x, y in parts]
        losses.append([loss.item() for loss in of_ranks])
        gradients.append([torch.autograd.grad(loss, parameters) for loss in of_ranks])
        mean = [torch.stack(some).mean(0) for some in zip(*gradients[-1], strict=True)]
        kept = [new if zeroed else old + new for old, new in zip(kept, mean, strict=True)]
        with torch.no_grad():
            for p, gradient in zip(parameters, kept, strict=True):
                p -= lr * gradient
    return torch.cat([p.detach().flatten() for p in parameters]), losses, gradients


def is_a_multiple(got, right):
    got, right = got.flatten().double(), right.flatten().double()
    if got.shape != right.shape or not got.any():
        return got.shape == right.shape and not right.any()
    factor = torch.dot(got, right) / torch.dot(got, got)
    return bool((factor * got - right).abs().max() <= 1e-2 * right.abs().max())


def descends(
    what: str, end_of: Callable, simulated: Callable, more: tuple[str, Claim], shown: dict, others: dict
) -> Callable[[Any], Rows]:
    """The specification of a function that descends as one process does: ``end_of`` what it returns is ``what``."""

    def as_one_process(run):
        got, right = [end_of(report.returned) for report in run.reports], simulated(run)[0]
        why = values.close(what, got, [right] * run.world_size)
        if why and not values.close(what, got, [simulated(run, zeroed=False)[0]] * run.world_size):
            why += "; that comes of gradients that add up over the steps: call zero_grad in each"
        return why

    def hands_over_gradients(run):
        """In any order, perhaps times a factor."""
        for step, of_ranks in enumerate(simulated(run)[2] if run.world_size > 1 else ()):
            for rank, right in enumerate(of_ranks):
                handed = run.reports[rank].given[step * len(right) : (step + 1) * len(right)]
                if not all(any(is_a_multiple(each, gradient) for each in handed) for gradient in right):
                    return f"in step {step} what rank {rank} hands to all_reduce is not its gradient"
        return None

    def gradients_of(run):
        return sum(len(of_ranks[0]) for of_ranks in simulated(run)[2])

    same = all_of(as_one_process, lambda run: values.same(what, [end_of(report.returned) for report in run.reports]))
    gradients = all_of(as_one_process, all_reduces(gradients_of), hands_over_gradients)
    words, also = more[0], all_of(gradients, more[1])

    @of(harness=noted, built_from=("all_reduce",))
    def rows(check):
        one = check.run(**shown)
        check.that(f"{what} is that of one process on all the samples", one, as_one_process, weight=2)
        check.that("and the same on all ranks, to the last bit", one, same)
        check.that("by an all-reduce for each gradient and step, no more", one, gradients)
        check.that(words, one, also)
        check.that("the same on 1, 3 and 5 ranks", check.runs(ranks=(1, 3, 5), **others), all_of(same, also))
        draw = yield
        case = {"seed": draw.randrange(100, 10**6), "samples": draw.randrange(6, 12), "lr": draw.uniform(0.05, 0.1)}
        case |= {"hidden": draw.randrange(3, 10)} if "hidden" in shown else {}
        several = [*check.runs(ranks=range(1, 7), **case, steps=8), check.run(ranks=2, **case, steps=30)]
        check.that("1 to 6 ranks, other samples", several, as_one_process, weight=2)
        check.that("their bits, what they send, and all the rest", several, all_of(same, also), weight=3)

    return rows


def train(batch: Callable) -> Callable[[Any], Rows]:
    """The specification, for the notebook's data."""

    def simulated(run, **mistake):
        case, w = run.case.options, torch.zeros(4, dtype=torch.float64, requires_grad=True)
        parts = [[t.double() for t in batch(case["seed"], rank, case["samples"])] for rank in range(run.world_size)]
        return in_one_process(
            parts, [w], lambda x, y: (x @ w - y).square().mean(), case["lr"], case["steps"], **mistake
        )

    def losses_of_its_own(run):
        for rank, report in enumerate(run.reports):
            if w_of(report.returned) is report.returned:
                return f"rank {rank} returned {values.in_short(report.returned)}, not (w, losses)"
            losses = report.returned[1]
            expected = [of_ranks[rank] for of_ranks in simulated(run)[1]]
            if len(losses) != len(expected):
                return f"rank {rank} returned {len(losses)} losses in {len(expected)} steps"
            names = tuple(f"rank {rank}'s loss before step {step}" for step in range(len(losses)))
            if why := numbers(names, losses, expected, 5e-3):
                return why
        return None

    def w_of(returned):
        return returned[0] if isinstance(returned, (tuple, list)) and len(returned) == 2 else returned

    losses = "and each rank returns its own loss before each step", losses_of_its_own
    shown, others = {"seed": 7, "samples": 8, "lr": 0.2, "steps": 12}, {"seed": 8, "samples": 5, "lr": 0.1, "steps": 4}
    return descends("w", w_of, simulated, losses, shown, others)


def train_with_hooks(batch: Callable, make_model: Callable) -> Callable[[Any], Rows]:
    """The specification, for the notebook's data and model."""

    def simulated(run, **mistake):
        case = run.case.options
        model = make_model(case["seed"], case["hidden"])
        parts = [batch(case["seed"], rank, case["samples"]) for rank in range(run.world_size)]

        def loss_of(x, y):
            return torch.nn.functional.mse_loss(model(x).squeeze(1), y)

        return in_one_process(parts, list(model.parameters()), loss_of, case["lr"], case["steps"], **mistake)

    def while_backward_runs(run):
        for rank, report in enumerate(run.reports):
            if False in report.inside:
                number = report.inside.index(False) // 4  # of the model's parameters
                return f"in step {number} rank {rank} calls all_reduce after backward, and not while it runs"
        return None

    during = "and while backward runs", while_backward_runs
    shown = {"seed": 3, "samples": 8, "hidden": 5, "lr": 0.1, "steps": 5}
    return descends(
        "the model", lambda returned: returned, simulated, during, shown, {**shown, "hidden": 7, "steps": 2}
    )


# ---- 5. sum_pieces

one_for_each_piece = all_of(
    collectives.everyone_has_the_sum,
    traffic.operations_are(lambda run: [("all_reduce", run.element_size * size) for size in run.option("sizes")]),
)


@of(built_from=("all_reduce",))
def sum_pieces(check):
    uneven, alike = check.run(numel=15, sizes=(6, 2, 4, 3)), check.run(numel=12, sizes=(3, 3, 3, 3))
    others = check.runs(ranks=(1, 3, 5), numel=21, sizes=(1, 9, 4, 7))
    wide = check.run(numel=20, sizes=(5, 5, 5, 5), dtype=torch.float64)
    is_the_sum = collectives.everyone_has_the_sum
    check.that("every piece is summed, where sizes differ and where they do not", [uneven, alike], is_the_sum, weight=3)
    check.that("by one all-reduce for each piece, no more", [uneven, alike], one_for_each_piece)
    check.that("the same on 1, 3 and 5 ranks, and with float64", [*others, wide], one_for_each_piece)
    draw = yield
    sizes = tuple(draw.randrange(1, 12) for _ in range(draw.randrange(3, 7)))
    several = check.runs(ranks=range(1, 7), numel=sum(sizes), sizes=sizes)
    several += [check.run(numel=60, sizes=(1, 2) * 20), check.run(numel=20, sizes=(3, 5, 5, 7), dtype=torch.float64)]
    check.that("1 to 6 ranks, many pieces, other kinds of numbers", several, is_the_sum, weight=3)
    check.that("the pieces one by one", several, one_for_each_piece, weight=2)


# ---- 6. first_missing


def trace_of(calls: list[int], others: tuple = ("send", "recv")) -> list[Operation]:
    """Rank r makes ``calls[r]`` all_reduces, and some other calls between them."""
    return [
        Operation(kind, rank, start=turn + rank / 8, bytes=4, line="cell 1 line 1")
        for turn in range(max(calls))
        for rank in range(len(calls))
        for kind in (*others[: (rank + turn) % 3], *["all_reduce"] * (turn < calls[rank]))
    ]


def finds_it(run: Run) -> str | None:
    """The first all_reduce that not all called, and who did not."""
    trace, n = run.case.args
    calls = [sum(op.rank == rank and op.kind == "all_reduce" for op in trace) for rank in range(n)]
    absent = [rank for rank in range(n) if calls[rank] == min(calls)]
    right = None if min(calls) == max(calls) else (min(calls) + 1, absent)
    got = run.returned[0]
    if isinstance(got, (tuple, list)) and len(got) == 2 and isinstance(got[1], Collection):
        got = got[0], sorted(got[1])
    return None if got == right else f"returned {run.returned[0]!r}, expected {right}"


@of(**paper.PLAIN)
def first_missing(check):
    def traces(*of_ranks, **others):
        return [check.run(trace_of(calls, **others), len(calls)) for calls in of_ranks]

    check.that("rank 0 alone in its seventh: all_reduce 7, ranks 1, 2, 3", traces([7, 6, 6, 6]), finds_it)
    check.that("None when all called alike", traces([3, 3, 3], [2]), finds_it)
    absent = traces([2, 2, 0, 2, 2], others=())
    check.that("rank 2 of five called nothing, so it is not in the trace: all_reduce 1, rank 2", absent, finds_it)
    check.that("three ranks, each in another call: the first that was missed", traces([2, 3, 1]), finds_it)
    draw = yield
    kinds = [("broadcast", "barrier"), ("all_gather", "reduce"), ("reduce_scatter", "all_to_all")]
    check.that("other collectives do not count", [traces([3, 2, 3], others=some)[0] for some in kinds], finds_it)
    drawn = [[draw.randrange(6) for _ in range(draw.randrange(2, 9))] for _ in range(4)]
    late = draw.randrange(64)
    many = traces([5, 3, 9, 3], *drawn, [40 - (rank == late) for rank in range(64)])
    check.that("ranks that are far apart, and one of 64", many, finds_it, weight=2)
    check.that("ranks that called nothing", traces([2, 0, 0, 2], [0, 0, 0], others=()), finds_it)
    by_rank = check.run(sorted(trace_of([5, 2, 4]), key=lambda op: op.rank), 3)
    check.that("one rank's operations after another's", by_rank, finds_it)


# ---- 8. culprit, and what dumps say


def on_dumps(function: Callable, **job: Any) -> Any:
    """What the function returns for the dumps of a training job, without the library's reader."""
    dumps = recorded.training(**job).dumps
    with unaided(*paper.ANSWERS, "ringzero.dumps"):
        return function(dumps)


def finds_the_culprit(run: Run) -> str | None:
    """The first collective on which the ranks differ, who differs there, and in what."""
    job = recorded.training(**run.case.options)
    right = job.fault and (job.number, job.ranks, job.fault)
    got = run.returned[0]
    if isinstance(got, (tuple, list)) and len(got) == 3:
        ranks = got[1] if isinstance(got[1], Collection) else [got[1]]
        named = [plain_number(rank) for rank in ranks]  # of any types, and in any order
        same = len(named) == len(job.ranks) and all(rank in named for rank in job.ranks)
        got = plain_number(got[0]), job.ranks if same else named, got[2]
    return None if got == right else f"returned {run.returned[0]!r}, expected {right}"


@of(harness=on_dumps, built_from=(), ranks=1)
def culprit(check):
    def jobs(*seeds, world=4, **others):
        return [check.run(seed=seed, world=world, **others) for seed in seeds]

    never, other, size = ({"fault": fault} for fault in ("never came", "something else", "other size"))
    check.that("a rank that never came to a collective", jobs(1, 2, **never), finds_the_culprit)
    check.that("a rank that called something else in its place", jobs(1, 2, **other), finds_the_culprit)
    check.that("a rank with a tensor of another size, also if it is rank 0", jobs(1, 2, **size), finds_the_culprit)
    check.that("None when all called alike", jobs(1, fault=None), finds_the_culprit)
    check.that("two ranks of eight that have one fault", jobs(1, **size, world=8, odd=2), finds_the_culprit)
    check.that("a rank that recorded nothing at all", jobs(3, **never, number=1), finds_the_culprit)
    check.that(
        "buffers of 10 entries, which begin at different numbers",
        [run for fault in (never, size) for run in jobs(4, **fault, kept=10)],
        finds_the_culprit,
    )
    draw = yield

    def seeds(count):
        return [draw.randrange(100, 10**6) for _ in range(count)]

    faults = (never, other, size, {"fault": None})
    drawn = [run for fault in faults for run in jobs(*seeds(3), world=draw.randrange(3, 9), **fault)]
    check.that("other jobs of 3 to 8 ranks", drawn, finds_the_culprit, weight=2)
    several = [run for fault in faults[:3] for run in jobs(*seeds(2), world=8, **fault, odd=draw.randrange(2, 4))]
    check.that("several ranks with one fault", several, finds_the_culprit)
    full = [run for fault in faults[:3] for run in jobs(*seeds(2), world=5, **fault, kept=draw.randrange(8, 12))]
    check.that(
        "other buffers that were full, and 64 ranks", [*full, *jobs(*seeds(1), world=64, **size)], finds_the_culprit
    )
