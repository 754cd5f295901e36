"""The checks themselves: what they say, what they count, and what they cost when a function hangs."""

import contextlib
import re
import time

import pytest
import torch
import torch.distributed as dist

from ringzero import collectives
from ringzero.ranks import Ranks, RankTimeout, plain_data
from ringzero.record.operation import Operation
from ringzero_course.lab import (
    LIBRARY,
    Check,
    LabError,
    budget,
    check_parameters,
    claims,
    execute,
    explore,
    failure,
    handle,
    hidden,
    on_rank,
    parameters,
    runs,
    slide,
    written,
)
from ringzero_course.lab.runs import Case, Run
from ringzero_course.lab.shown import drawing, explorer


@pytest.fixture(autouse=True)
def fresh_budget(monkeypatch):
    monkeypatch.setattr(budget, "_hangs", {})


# Functions as a student writes them.


def ring(tensor):
    """All-reduce, chunk by chunk, in 2(N-1) steps."""
    rank, n = dist.get_rank(), dist.get_world_size()
    chunks = tensor.tensor_split(n)
    for i in range(2 * (n - 1)):
        landing = torch.empty_like(chunks[(rank - 1 - i) % n])
        together = [
            dist.P2POp(dist.isend, chunks[(rank - i) % n], (rank + 1) % n),
            dist.P2POp(dist.irecv, landing, (rank - 1) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        if i < n - 1:
            landing += chunks[(rank - 1 - i) % n]
        chunks[(rank - 1 - i) % n].copy_(landing)


def step(tensor, shift=1):
    """One exchange with a neighbour."""
    rank, n = dist.get_rank(), dist.get_world_size()
    if n > 1:
        landing = torch.empty_like(tensor)
        together = [
            dist.P2POp(dist.isend, tensor, (rank + shift) % n),
            dist.P2POp(dist.irecv, landing, (rank - shift) % n),
        ]
        for work in dist.batch_isend_irecv(together):
            work.wait()
        tensor.copy_(landing)


def from_the_left(run):
    return claims.equal("the tensor", run.after, [run.inputs[rank - 1] for rank in range(run.world_size)])


def lingers(tensor):
    step(tensor)
    time.sleep(1.5 * (dist.get_rank() == 1))


def absent(tensor):
    if dist.get_rank() != 1:
        dist.recv(tensor, src=1)


def absent_for_large(tensor):
    if tensor.numel() < 100:
        step(tensor)
    else:
        absent(tensor)


def unfinished(tensor):
    raise NotImplementedError


def leaves_a_message(tensor):
    """Does its part; then, for five elements, rank 0 starts a send that nobody receives or waits for."""
    step(tensor)
    if dist.get_rank() == 0 and tensor.numel() == 5:
        kept.append(dist.isend(tensor, 1))


kept = []


def fails_for_seven(tensor):
    if tensor.numel() == 7:
        raise IndexError("seven")
    step(tensor)


def double(x):
    return 2 * x


def make(function, points=4, **options):
    return Check(function, points=points, world_size=3, device="cpu", **options)


# Scores.


def test_all_claims_hold(capsys):
    check = make(step)
    check.that(
        "shifted", [check.run(numel=10), check.run(numel=7, ranks=2), check.run(numel=1, ranks=1)], from_the_left
    )
    assert check.score() == 4
    assert "step: 4 of 4 points" in capsys.readouterr().out


def test_weights_share_the_points(capsys):
    check = make(step)
    run = check.run(numel=10)
    check.that("shifted", run, from_the_left, weight=3)
    check.that("never", run, lambda run: "because")
    assert check.score() == 3.0
    shown = capsys.readouterr().out
    assert "FAIL  0.00/1.00  never" in shown
    assert "with 3 ranks, 10 float32 numbers: because" in shown


def test_thirds_never_exceed_the_points():
    check = make(double, points=2)
    run = check.run(1)
    for _ in range(7):
        check.that("yes", run, lambda run: None)
    assert check.score() == 2


def sums(tensor):
    dist.all_reduce(tensor)


def only_meets(tensor):
    dist.barrier()


def ranks_of(factor):
    return factor * dist.get_rank()


@pytest.mark.parametrize(
    ("function", "built_from", "why"),
    [
        (sums, ("all_reduce",), None),
        (sums, ("send", "recv"), "rank 0 called all_reduce; build it from send and recv"),
        (sums, (), "rank 0 called all_reduce; it is to send nothing"),
        (only_meets, ("all_reduce",), "no rank sent anything"),
    ],
)
def test_what_a_function_may_be_built_from(function, built_from, why):
    check = make(function, built_from=built_from)
    run = check.run(numel=5)
    check.that("runs", run, lambda run: None)
    check.score()
    assert [verdict.why for verdict in check.verdicts] == [why and f"with 3 ranks, 5 float32 numbers: {why}"]


def test_ringzeros_collectives_are_allowed_where_the_check_says_so():
    run = Run(Case(1, None, torch.float32, (), {}), None)
    common = {"rank": 0, "start": 0.0, "end": 1.0, "bytes": 4, "members": (0,)}
    run.operations = [[Operation(kind, call=1, peer=0, **common) for kind in ("header", "send", "recv")]]
    for built_from, reason in (
        (("send", "recv"), "used a collective of ringzero; build it from send and recv"),
        ((LIBRARY,), None),
    ):
        said = failure.nothing_proved(run, built_from)
        assert (reason is None and said is None) or reason in said
    run.operations[0].append(Operation("all_reduce", **common))
    assert "build it from ringzero's collectives" in failure.nothing_proved(run, (LIBRARY,))


def test_a_function_of_plain_values_on_several_ranks():
    check = make(ranks_of)
    run = check.run(factor=2, ranks=3)
    check.that("runs", run, lambda run: None)
    check.score()
    assert run.returned == [0, 2, 4]
    assert str(run.case) == "3 ranks, (factor=2)"


def test_no_claims_no_points():
    assert make(double).score() == 0


def test_a_claim_that_breaks_does_not_hold(capsys):
    check = make(double)
    check.that("breaks", check.run("a"), lambda run: claims.number("it", run.returned[0] / 2, 1))
    assert check.score() == 0
    assert "cannot be checked (TypeError" in capsys.readouterr().out


def test_nothing_reaches_stderr(capfd):
    check = make(absent)
    check.that("shifted", check.run(numel=10), from_the_left)
    check.score()
    assert capfd.readouterr().err == ""


def test_inputs_differ_between_ranks_and_calls_but_not_between_times():
    first, second = (make(step).run(numel=50) for _ in range(2))
    assert torch.equal(first.inputs[0], second.inputs[0])
    assert not torch.equal(first.inputs[0], first.inputs[1])
    check = make(step)
    assert not torch.equal(check.run(numel=50).inputs[0], check.run(numel=50).inputs[0])


@pytest.mark.parametrize("dtype", sorted(runs.LARGEST, key=str))
def test_sums_of_inputs_are_exact(dtype):
    case = Case(8, 1000, dtype, (), {}, seed=5)
    run = Run(case)
    here = torch.stack(run.inputs).sum(0, dtype=dtype)
    there = torch.stack(run.inputs[::-1]).sum(0, dtype=dtype)
    assert torch.equal(here, there)
    assert torch.equal(here.to(run.total().dtype), run.total())


def test_a_harness_gets_the_functions_and_then_the_case():
    def harness(first, second, x, *, y):
        return {"sum": first(x) + second(y), "rank": dist.get_rank()}

    check = make(double, harness=harness, uses=(ranks_of,))
    run, *several = check.run(5, y=7), *check.runs(5, ranks=(1, 2), y=lambda n: 10 * n)
    check.that("called", [run, *several], lambda run: None)
    assert check.score() == 4
    assert [report.sum for report in run.reports] == [10, 17, 24]
    assert [[report.sum for report in run.reports] for run in several] == [[10], [10, 30]]
    assert check.name == "double"


def test_a_handle_is_a_name_and_bytes(monkeypatch):
    names = {"mine": double, "three": 3}
    monkeypatch.setattr(handle, "notebook_names", lambda: names)
    first, again = handle.of("mine"), handle.of("mine")
    assert first == again
    assert first.problem is None
    names["mine"] = lambda x: 3 * x
    assert handle.newest(first).version == first.version + 1
    assert handle.of("three").problem == "three is 3, not a function: run the cell that defines it, then this one"
    assert handle.of("none").problem == "none is not defined: run the cell that defines it, then this one"
    lock = __import__("threading").Lock()
    names["mine"] = lambda: lock
    assert "mine cannot be sent to the ranks" in handle.of("mine").problem


# What goes wrong.


def verdict(function, *sizes):
    """The points, and why each claim does not hold."""
    check = make(function)
    every = [check.run(numel=size) for size in sizes]
    for run in every:
        check.that(f"{run.numel}", run, from_the_left)
    points = check.score()
    return points, [verdict.why for verdict in check.verdicts]


@pytest.fixture
def launches(monkeypatch):
    """A list that grows with every launch of a check."""
    found, launch = [], execute.ringzero.launch

    def counted(*args, **options):
        found.append(args)
        return launch(*args, **options)

    monkeypatch.setattr(execute.ringzero, "launch", counted)
    return found


def test_not_written_yet():
    points, reasons = verdict(unfinished, 10, 20)
    assert points == 0
    assert reasons == ["unfinished is not written yet"] * 2


def test_one_case_that_raises_loses_only_itself():
    points, reasons = verdict(fails_for_seven, 5, 7, 9)
    assert points == pytest.approx(2.67)
    assert "raised IndexError: seven" in reasons[1]
    assert 'raise IndexError("seven")' in reasons[1]


def all_fail_for_seven(tensor):
    step(tensor)
    if tensor.numel() == 7:
        raise IndexError(f"seven on {dist.get_rank()}")


def test_what_all_ranks_raise_costs_no_launch_of_its_own(monkeypatch):
    launches, launch = [], execute.ringzero.launch
    monkeypatch.setattr(
        execute.ringzero, "launch", lambda *args, **options: launches.append(1) or launch(*args, **options)
    )
    points, reasons = verdict(all_fail_for_seven, 7, 5, 7, 9)
    assert points == 2
    assert "raised IndexError: seven on" in reasons[0]
    assert [reason is None for reason in reasons] == [False, True, False, True]
    assert len(launches) == 1


def too_large_for_many(tensor):
    """A message that is larger than its room: gloo ends the receiver's process."""
    rank = dist.get_rank()
    if tensor.numel() < 8:
        step(tensor)
    elif rank == 0:
        dist.send(tensor, 1)
    elif rank == 1:
        dist.recv(tensor[1:], 0)


def test_what_ends_processes_is_not_tried_for_ever(launches):
    points, reasons = verdict(too_large_for_many, 5, 10, 6, 11, 7, 12, 4, 13, 14)
    assert points == pytest.approx(4 * 4 / 9, abs=0.01)
    for why, size in ((reasons[1], 10), (reasons[3], 11), (reasons[5], 12), (reasons[7], 13)):
        assert f"rank 1 got a message of {4 * size} bytes and expected one of {4 * size - 4}" in why
    assert [reasons[0], reasons[2], reasons[4], reasons[6]] == [None, None, None, None]
    assert "not run: too_large_for_many ended a process with 3 ranks, 13 float32 numbers" in reasons[8]
    assert len(launches) == 4


def test_a_message_left_over_does_not_spoil_the_next_case():
    points, reasons = verdict(leaves_a_message, 5, 6)
    assert points == 2
    assert "rank 0 never called wait() on 1 of its 2 sends to rank 1, test_checks.py line" in reasons[0]


def drops_its_send(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    dist.isend(tensor.clone(), (rank + 1) % n)
    dist.recv(tensor, (rank - 1) % n)


def receives_first(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    mine = tensor.clone()
    dist.recv(tensor, (rank - 1) % n)
    dist.send(mine, (rank + 1) % n)


def never_ends(tensor):
    while tensor.numel():
        pass


def exchanges_for_ever(tensor):
    while tensor.numel():
        step(tensor)


def never_ends_and_catches_errors(tensor):
    while tensor.numel():
        try:
            tensor + 1
        except Exception:
            continue


def one_rank_alone(tensor):
    if dist.get_rank() == 0:
        dist.all_reduce(tensor)


def barrier_on_some(tensor):
    step(tensor)
    if dist.get_rank() < 2:
        dist.barrier()


def says_nothing_known(tensor):
    unknown(tensor)  # noqa: F821


def helped(tensor):
    says_nothing_known(tensor)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (drops_its_send, ("posted a send, test_checks.py line", "cancels it")),
        (receives_first, ("a cycle: rank", "waits to receive from rank", "test_checks.py line")),
        (never_ends, ("came to no end: is this loop endless?", "while tensor.numel():")),
        (never_ends_and_catches_errors, ("came to no end: is this loop endless?",)),
        (exchanges_for_ever, ("came to no end: is this loop endless?",)),
        (one_rank_alone, ("ranks 1, 2 never entered all_reduce #1; rank 0 waits there, test_checks.py line",)),
        (barrier_on_some, ("rank 2 never entered barrier #1; ranks 0, 1 wait there, test_checks.py line",)),
        (says_nothing_known, ("raised NameError: name 'unknown' is not defined", "unknown(tensor)")),
        (helped, ("unknown(tensor)", "called in helped,", "says_nothing_known(tensor)")),
    ],
)
def test_typical_mistakes_are_said_in_the_students_own_lines(monkeypatch, function, words):
    """Long before the time is up: a call that was not ended early would take ten minutes."""
    monkeypatch.setattr(budget, "CALL_SECONDS", 600.0)
    points, (why,) = verdict(function, 10)
    assert points == 0
    for word in words:
        assert word in why
    for module in ("site-packages", "ringzero/", "run.py", "_c10d"):
        assert module not in why


def reason_of(function, claim, **options):
    check = make(function, **options)
    check.that("holds", check.run(numel=9), claim)
    check.score()
    return check.verdicts[0].why


def own_chunk(tensor):
    step(tensor)
    return tensor.tensor_split(dist.get_world_size())[dist.get_rank()]


def test_a_copy_is_no_view():
    assert reason_of(own_chunk, claims.returns_a_view) is None
    why = reason_of(lambda tensor: own_chunk(tensor).clone(), claims.returns_a_view)
    assert "what rank 0 returns is a copy of the chunk, not a view of its tensor" in why
    why = reason_of(lambda tensor: (own_chunk(tensor), tensor[1:])[dist.get_rank() == 0], claims.returns_a_view)
    assert "what rank 0 returns begins at element 1 of its tensor, and its chunk at 0" in why


def test_what_cannot_be_returned_is_named_by_the_place_that_a_student_knows():
    why = reason_of(lambda tensor: (tensor, torch.nn.Linear(1, 1)), claims.everyone_has_the_sum)
    assert "raised TypeError: the returned value[1] is a torch.nn.modules.linear.Linear; a rank returns" in why


def leaves_rank_1_out(tensor):
    dist.all_reduce(tensor.zero_() if dist.get_rank() == 1 else tensor)


def has_rank_0_alone(tensor):
    dist.all_reduce(tensor if dist.get_rank() == 0 else tensor.zero_())


def counts_rank_0_twice(tensor):
    dist.all_reduce(tensor.mul_(2) if dist.get_rank() == 0 else tensor)


def halves(tensor):
    dist.all_reduce(tensor.div_(2))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (leaves_rank_1_out, ": rank 1's part is missing"),
        (has_rank_0_alone, ": the parts of ranks 1, 2 are missing"),
        (counts_rank_0_twice, ": rank 0's part counts twice"),
        (halves, ""),
    ],
)
def test_whose_part_is_missing_or_doubled_is_said(function, words):
    why = reason_of(function, claims.everyone_has_the_sum, built_from=("all_reduce",))
    assert re.search(r"\[0\] is \S+, expected [^:]*" + words + "$", why)


def whole_check(function, collective, limits, secret, monkeypatch, **options):
    monkeypatch.setattr(hidden, "secret", secret)
    check = make(function, **options)
    check.is_the(collective, limits)
    check.hidden_cases()
    return check


def test_a_specification_makes_the_rows_and_the_cases(monkeypatch):
    builtin = {"built_from": ("all_reduce",)}
    check = whole_check(dist.all_reduce, "all_reduce", [], "", monkeypatch, **builtin)
    check.score()
    assert {verdict.why for verdict in check.verdicts} == {None}
    assert [verdict.claim for verdict in check.verdicts] == [
        "every rank ends with the sum",
        "also when N does not divide the size",
        "the same by the rules of NCCL",
        "also on 1, 3 and 5 ranks, and with float64",
        "1 to 7 ranks",
        "fewer elements than ranks, and one more",
        "other kinds of numbers, without loss",
    ]
    check = whole_check(leaves_rank_1_out, "all_reduce", [], "", monkeypatch, **builtin)
    assert check.score() == 0


def test_a_wrong_sum_of_small_numbers_blames_nobody():
    """Of numbers up to 16 some of the sums over ranks are the wrong one by chance."""
    check = make(leaves_rank_1_out, built_from=("all_reduce",))
    check.that("the sum", check.run(numel=9, dtype=torch.bfloat16), claims.everyone_has_the_sum)
    check.score()
    assert "part" not in check.verdicts[0].why


def test_hidden_cases_of_a_function_of_plain_values_weigh_half(monkeypatch):
    check = Check(lambda x: {3: 3}.get(x, 0), points=4, world_size=3, device="cpu", built_from=())
    the_same = claims.gives("x", lambda x: x)
    check.that("shown", check.run(3), the_same, weight=3)
    monkeypatch.setattr(hidden, "is_declared_hidden", lambda: True)
    check.that("hidden", check.run(4), the_same)
    assert check.score() == 2


def test_hidden_cases_follow_from_the_secret(monkeypatch):
    def cases(secret):
        check = whole_check(dist.broadcast, "broadcast", [], secret, monkeypatch)
        return [str(run.case) for run in check._runs]

    first, again, other = cases("spring"), cases("spring"), cases("autumn")
    assert first == again != other
    assert first[:7] == other[:7]  # those that students see


def test_a_cell_that_does_not_parse_is_not_checked_by_what_it_replaced(monkeypatch):
    cells = ["", "def mine(x):\n    return x", "mine(3)", "def mine(x):\n    return x +", "print(mine)"]
    names = {"mine": double, "In": cells}
    for module in (handle, parameters):
        monkeypatch.setattr(module, "notebook_names", lambda: names)
    why = handle.of("mine").problem
    assert why == (
        "the cell that defines mine does not parse (invalid syntax · cell [3], line 2: return x +): mend it and run it"
    )
    cells.append("def mine(x):\n    return x + 1")
    assert handle.of("mine").problem is None
    assert handle.of(double).problem is None


def test_not_defined(capsys):
    check = make("no_such_function")
    check.that("works", check.run(numel=3), from_the_left)
    assert check.score() == 0
    assert "no_such_function is not defined: run the cell that defines it" in capsys.readouterr().out


def test_result_that_is_not_plain_data(capsys):
    check = make(lambda x: object())
    check.that("works", check.run(3), lambda run: None)
    assert check.score() == 0
    assert "is a builtins.object" in capsys.readouterr().out


def test_hang_names_the_ranks_and_keeps_what_was_done():
    points, reasons = verdict(absent_for_large, 10, 200, 20)
    assert points == pytest.approx(1.33)
    assert reasons[0] is None
    assert "no end after" in reasons[1]
    assert re.search(r"rank 1 sent rank 0 nothing|rank 1 sent rank 2 only 1 message", reasons[1])  # who waited first
    assert "rank 0 waits to receive from rank 1, test_checks.py line" in reasons[1]
    assert "rank 1 had returned" in reasons[1]
    assert "not run: absent_for_large hung with 3 ranks, 200 float32 numbers" in reasons[2]


def test_a_hang_is_seen_long_before_the_time_is_up(monkeypatch):
    monkeypatch.setattr(budget, "CALL_SECONDS", 600.0)
    start = time.monotonic()
    points, reasons = verdict(absent_for_large, 10, 200)
    assert points == 2
    assert "rank 1 had returned" in reasons[1]
    assert time.monotonic() - start < 0.5 * budget.CALL_SECONDS


def test_ranks_that_are_done_long_before_a_slow_one():
    points, reasons = verdict(lingers, 5, 6, 7)
    assert (points, reasons) == (4, [None] * 3)


def test_a_hanging_function_is_not_run_again(launches):
    verdict(absent, 10)
    _, reasons = verdict(absent, 10, 20)
    assert len(launches) == 1
    assert all("not run again: absent hung with 3 ranks, 10 float32 numbers" in reason for reason in reasons)


def test_an_endless_loop_is_not_run_again(launches):
    points, reasons = verdict(never_ends, 10, 20)
    assert points == 0
    assert len(launches) <= 2  # twice where the machine is so busy that the ranks had too little of it
    assert "is this loop endless?" in reasons[0]
    assert "not run: never_ends hung with 3 ranks, 10 float32 numbers" in reasons[1]


def answer():
    return {"cause": "none"}


def test_an_answer_has_no_case_to_name(capsys):
    check = make(answer, built_from=())
    check.that("the cause", check.run(ranks=1), lambda run: "'cause' is 'none'")
    check.score()
    said = capsys.readouterr().out
    assert "'cause' is 'none'" in said
    assert "with ()" not in said


def test_few_ranks_come_first_and_a_single_one_last(monkeypatch):
    """So a loop without an end is told soon, and who hangs on one rank alone loses that alone."""
    order = []
    monkeypatch.setattr(execute, "execute", lambda runs, *_: order.append(runs[0].world_size))
    check = make(double)
    check.that("ends", check.runs(numel=9, ranks=(4, 1, 2, 7)), lambda run: None)
    check.score()
    assert order == [2, 4, 7, 1]


@pytest.mark.parametrize(
    ("frames", "caller"),
    [
        ([("cell [3]", 4, "exchange"), ("cell [7]", 9, "ring")], ("cell [7]", 9, "ring")),
        ([("cell [7]", 9, "ring")], None),
        ([("cell [3]", 4, "exchange"), ("cell [8]", 2, "put")], ("cell [8]", 2, "put")),  # a method of a class
        ([("cell [8]", 5, "<lambda>"), ("cell [8]", 2, "put")], None),
        ([("cell [3]", 4, "exchange")], None),
        ([], None),
    ],
)
def test_who_called_a_function_of_the_lab(frames, caller):
    student = handle.Handle("ring", cells=frozenset({"cell [8]"}))
    assert failure._caller(frames, student) == caller


def test_a_function_that_calls_a_hanging_one_is_not_run(launches):
    names = {"dist": dist}
    exec("def stuck(tensor):\n    if dist.get_rank() != 1:\n        dist.recv(tensor, src=1)", names)
    exec("def caller(tensor):\n    stuck(tensor)", names)
    exec("def other(tensor):\n    return 1", names)
    verdict(names["stuck"], 10)
    _, reasons = verdict(names["caller"], 10)
    assert reasons[0].startswith(
        "with 3 ranks, 10 float32 numbers: not run: it calls stuck, and stuck hung with 3 ranks, 10 float32 numbers: "
        "no end after"
    )
    assert len(launches) == 1
    check = make(names["other"])
    check.that("runs", check.run(numel=0), lambda run: None)
    assert check.score() == 4


def test_a_hang_takes_no_time_from_other_functions(monkeypatch):
    monkeypatch.setattr(budget.os, "cpu_count", lambda: 2)
    for each in range(10):
        budget.hung(handle.Handle(f"function {each}"), "hung")
    assert [budget.call_seconds(ranks) for ranks in (1, 2, 3, 4)] == [20.0, 20.0, 30.0, 40.0]


def test_a_new_version_of_what_hung_is_run():
    verdict(absent, 10)

    def better(tensor):
        step(tensor)

    better.__name__ = "absent"
    points, _ = verdict(better, 10)
    assert points == 4


def test_what_uses_a_class_that_hung_is_not_run(launches):
    names = {"dist": dist}
    exec("class Stuck:\n    def put(self):\n        if dist.get_rank() != 1:\n            dist.barrier()", names)
    exec("def caller(tensor):\n    Stuck().put()", names)
    budget.hung(handle.of(names["Stuck"]), "Stuck hung")
    _, reasons = verdict(names["caller"], 10)
    assert "not run: it calls Stuck, and Stuck hung" in reasons[0]
    assert len(launches) == 0


@pytest.mark.parametrize(("share", "slowdown", "passes"), [(0.5, 1.0, True), (0.9, 1.0, False), (0.9, 3.0, True)])
def test_slow_but_right_passes_though_all_cases_together_take_longer(monkeypatch, share, slowdown, passes):
    """A case in which the time ran out gets another call, unless it had nearly all of the time and an idle machine."""
    monkeypatch.setattr(budget, "slowdown", lambda: slowdown)
    calls = []

    def launch(play, students, harness, cases, directory, *, world_size, timeout, **_):
        """Plays the first case; the next one has a ``share`` of the time, which is then up."""
        calls.append(len(cases))
        report = {"returned": None, "after": None, "operations": [], "device": "cpu"}
        for rank in range(world_size):
            plain_data.dump(report | {"time": time.time() - share * timeout}, f"{directory}/0-{rank}")
        if len(cases) > 1:
            raise RankTimeout("the time is up", 0, [""] * world_size, deadlocked=False)
        return Ranks([None] * world_size, [""] * world_size, timeout)

    monkeypatch.setattr(execute.ringzero, "launch", launch)
    check = make(double)
    every = [check.run(x, ranks=3) for x in (4, 5, 6)]
    check.that("ends", every, lambda run: None)
    assert check.score() == 4 * passes
    assert calls == ([3, 2, 1] if passes else [3])
    assert ("no end after" in str(check.verdicts[0].why)) == (not passes)


def test_a_busy_machine_gives_a_case_one_more_call_and_more_time(monkeypatch):
    monkeypatch.setattr(budget, "slowdown", lambda: 3.0)
    times = []

    def launch(*_, timeout, **__):
        times.append(timeout)
        raise RankTimeout("2 ranks were not done: no cause", 0, ["", ""], deadlocked=False)

    monkeypatch.setattr(execute.ringzero, "launch", launch)
    points, (why,) = verdict(absent, 10)
    seconds = budget.call_seconds(3)
    assert (points, times) == (0, [seconds, 3 * seconds])
    assert "no end after" in why


@pytest.mark.parametrize(
    ("sends_each", "many", "words"),
    [
        (1, 10**9, None),  # slow, and right
        (0, 10**9, "computed for 0.2 s and came to no end"),
        (1, 3, r"sent and received [\d,]+ times and came to no end"),
    ],
)
def test_a_loop_is_endless_that_computes_and_sends_nothing_or_too_much(monkeypatch, sends_each, many, words):
    sent = 0
    monkeypatch.setattr(on_rank, "ENDLESS_SECONDS", 0.2)
    monkeypatch.setattr(on_rank, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(on_rank, "MANY_OPERATIONS", many)
    monkeypatch.setattr(on_rank.recorder, "count", lambda: sent)
    start = time.thread_time()
    expected = contextlib.nullcontext() if words is None else pytest.raises(on_rank.EndlessLoop, match=words)
    with expected, on_rank._endless_loops_end(on_rank.ENDLESS_SECONDS):
        while time.thread_time() - start < 0.6:
            sent += sends_each


def test_lab_launch_counts_hangs(monkeypatch):
    from ringzero_course.lab import launch

    assert launch(double, 4, world_size=2).returns == [8, 8]
    monkeypatch.setattr(budget, "CALL_SECONDS", 2.0)
    with pytest.raises(RankTimeout):
        launch(absent, torch.zeros(3), world_size=2, device="cpu")
    with pytest.raises(LabError, match="absent: not run again: absent hung"):
        launch(absent, torch.zeros(3), world_size=2, device="cpu")


# Parameters and drawings.


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({}, "WORLD_SIZE and DEVICE not defined: the lab's parameters cell is missing"),
        ({"WORLD_SIZE": 4}, "DEVICE not defined"),
        ({"WORLD_SIZE": "4", "DEVICE": "cpu"}, "WORLD_SIZE is '4'"),
        ({"WORLD_SIZE": 0, "DEVICE": "cpu"}, "WORLD_SIZE is 0"),
        ({"WORLD_SIZE": 4, "DEVICE": "gpu"}, "DEVICE is 'gpu'"),
    ],
)
def test_parameters(names, words):
    with pytest.raises(LabError, match=words):
        check_parameters(names)


def test_parameters_that_are_there():
    assert check_parameters({"WORLD_SIZE": 4, "DEVICE": "auto"}) is None


def test_written(capsys):
    names = {"unfinished": unfinished, "double": double, "three": 3}
    assert written("double", names=names)
    assert not written("double", "unfinished", "three", "four", names=names)
    assert capsys.readouterr().out == "three, four: not defined: run its cell first.\nunfinished: not written yet.\n"


class Half:
    def done(self):
        return 1

    def not_done(self):
        raise NotImplementedError


class Whole(Half):
    def not_done(self):
        return 2


def test_a_class_is_written_when_its_methods_are(capsys):
    assert written("Whole", names={"Whole": Whole})
    assert not written("Half", names={"Half": Half})
    assert capsys.readouterr().out == "Half: not written yet.\n"


def test_slider_draws_anew_and_turns_errors_into_a_line():
    def drawn(value):
        if value == 2:
            raise RuntimeError("two <is not drawn>")
        if value == 3:
            raise RuntimeError("rank 1 failed:\n ... NotImplementedError\n")
        return drawing.Note(f"drawn {value}")

    box = slide("size", {"one": 1, "two": 2, "three": 3}, drawn)
    slider, shown = box.children
    assert repr(box) == "size one: drawn 1"
    assert shown.value == "<p>drawn 1</p>"
    slider.value = 2
    assert repr(box) == "Nothing to draw: two <is not drawn>"
    assert shown.value == "<pre>Nothing to draw: two &lt;is not drawn&gt;</pre>"
    slider.value = 3
    assert repr(box) == "Nothing to draw: it calls what is not written yet"


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_what_is_drawn_is_what_ran(n):
    schedule, shares = drawing.observe(handle.of(ring), n, 840, {})
    collectives.verify(schedule)
    ours = collectives.ALGORITHMS["all_reduce"]["ring"](n)
    assert len(schedule.rounds) == len(ours.rounds)
    assert schedule.bytes_sent(840, 4).tolist() == ours.bytes_sent(840, 4).tolist()
    assert sum(shares) == pytest.approx(1)
    if n > 1:
        assert drawing.price(schedule, shares, 1e6, 1e-5, 1e-9) == pytest.approx(2 * (n - 1) * (1e-5 + 1e6 / n * 1e-9))


def test_codes_tell_element_and_ranks():
    total = runs.codes(100, 0) + runs.codes(100, 3) + runs.codes(100, 5)
    assert runs.decode(int(total[77])) == (77, [0, 3, 5])
    assert runs.decode(0) is None


def test_nothing_to_draw():
    assert "unfinished is not written yet" in repr(drawing.draw(unfinished, world_size=2))
    assert "no_such is not defined" in repr(drawing.draw("no_such", world_size=2))


def test_explorer_redraws_and_says_what_went_wrong(monkeypatch):
    pytest.importorskip("ipywidgets")
    names = {"ring": ring, "seconds": lambda size, n, alpha, beta: 2 * (n - 1) * (alpha + size / n * beta)}
    for module in (explorer, handle):
        monkeypatch.setattr(module, "notebook_names", lambda: names)
    box = explore(all_reduce="ring", seconds="seconds", world_size=2)
    page = box.children[-1]
    assert "<svg" in page.value
    assert ": the same." in page.value
    assert repr(box).startswith("ring, 2 ranks: 2 rounds, 1 MiB in ")
    _, ranks, _, size, _, _ = box.children[:-1]
    ranks.value = 3
    assert "ring on 3 ranks, 1 MiB: 4 rounds" in page.value
    size.value = 2**10
    assert "ring on 3 ranks, 1 KiB: 4 rounds" in page.value
    names["seconds"] = lambda size, n, alpha, beta: 0.5
    size.value = 2**12
    assert "They should agree" in page.value
    names["ring"] = fails_for_all
    ranks.value = 2
    assert "raised ZeroDivisionError" in page.value
    del names["ring"]
    ranks.value = 3
    assert "ring is not defined" in page.value
    names["ring"] = ring
    monkeypatch.setattr(explorer, "price", None)
    ranks.value = 2
    assert "The explorer failed: TypeError" in page.value


def fails_for_all(tensor):
    return 1 / 0


def _raised(error, message, *frames):
    report = {"error": error, "message": message, "frames": [list(frame) for frame in frames]}
    return failure.raised(0, report, handle.Handle("ring", cells=frozenset({"cell [7]"})))


def test_what_gloo_says_is_told_without_its_own_lines():
    place = "[enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:801] "
    itself = f"{place}state_ >= CONNECTED. 1 vs 4. Pair is not connected ([127.0.0.1]:43939$0 <--> [none])"
    assert _raised("RuntimeError", itself).endswith(
        "a rank sends to itself, or receives from itself, which gloo cannot do"
    )
    assert _raised("RuntimeError", f"{place}Connection closed") == "rank 0 raised RuntimeError: Connection closed"


def test_a_function_that_calls_itself_is_named():
    deep = [("cell [7]", 3, "ring", "ring(tensor)")] * 500
    said = _raised("RecursionError", "maximum recursion depth exceeded", *deep, ("cell [7]", 2, "ring", "if n > 1:"))
    assert said.startswith("rank 0 raised RecursionError: ring calls itself more often than Python allows")
    assert said.endswith(" · cell [7], line 3: ring(tensor)")


def test_a_global_that_is_assigned_to_is_named():
    names = {}
    exec("total = 0\ndef add(x):\n    global total\n    total += x\n    return total", names)
    assert handle.of(names["add"]).globals == ("total",)
    assert handle.of(double).globals == ()


@pytest.mark.parametrize(
    ("got", "hint"), [(2e-6, "GB, not bytes?"), (2000 / 2**30, "GiB, not bytes?"), (4000, "2 times")]
)
def test_a_unit_for_another_is_named(got, hint):
    assert hint in claims.number("the bytes", got, 2000)
