"""Lab 04, data-parallel training: what each function must be, what calls it, and what that comes to in one process.

The model notes when the backward pass comes to each of its layers (``harness.training``). With the ranks' records of
what they sent, the order of events proves what overlapped with what; the student's code has no part in the proof.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import zip_longest
from random import Random
from typing import Any

import torch
import torch.distributed as dist

from ringzero_course.lab.claims.collectives import all_of, given
from ringzero_course.lab.claims.oracle import Values, in_one_process, in_order, is_right, nothing_said
from ringzero_course.lab.claims.traffic import operations_are
from ringzero_course.lab.claims.values import far_off
from ringzero_course.lab.harness.returned import must_be_a_tensor
from ringzero_course.lab.harness.training import Model, batch, loss_of, numbers
from ringzero_course.lab.runs import Run
from ringzero_course.lab.specification import of, other_ranks
from ringzero_course.lab.subjects.plain import on_paper


def _state(module: torch.nn.Module, when: str = "") -> dict[str, torch.Tensor]:
    """Copies of the parameters and buffers, by name."""
    named = (*module.named_parameters(), *module.named_buffers())
    return {f"{when}{name}": tensor.detach().clone() for name, tensor in named}


def _widths(draw: Random, layers: int = 3) -> tuple[int, ...]:
    return tuple(draw.randrange(4, 14) for _ in range(layers))


# ---- a rank's part of the batch


def _loss_and_gradients(model: Model, loss: torch.Tensor) -> dict[str, Any]:
    loss.backward()
    return {"the loss": loss.detach()} | {f"the gradient of {name}": p.grad for name, p in model.named_parameters()}


def gradients_of_part(loss_of_part: Callable, samples: int, seed: int) -> dict:
    """On a rank: what its part of a batch gives, and which samples its model was given."""
    model, (x, y) = Model(seed), batch(seed, samples)
    values = _loss_and_gradients(model, must_be_a_tensor("loss_of_part", loss_of_part(model, x, y)))
    if any(value is None for value in values.values()):
        raise ValueError("the loss of this rank depends on no parameter: its gradient is None, where zeros would do")
    if not all(torch.equal(*both) for both in zip((x, y), batch(seed, samples), strict=True)):
        raise ValueError("loss_of_part changed x or y, which its caller still needs")
    return {"values": values, "seen": [row for x in model.seen for row in x.tolist()]}


def mean_is_that_of_the_whole_batch(run: Run) -> str | None:
    """The mean over the ranks of gradients and losses is that of the whole batch."""
    model, (x, y) = Model(run.option("seed")), batch(run.option("seed"), run.option("samples"))
    right = _loss_and_gradients(model, (model(x) - y).square().mean())
    mean = {name: sum(report.values[name] for report in run.reports) / run.world_size for name in right}
    return next(filter(None, (far_off(f"the mean of {name}", mean[name], right[name]) for name in right)), None)


@given(mean_is_that_of_the_whole_batch)
def each_sample_once(run: Run) -> str | None:
    """No sample is on two ranks, none is left out, and no rank has more than its share rounded up."""
    samples = run.option("samples")
    most = -(-samples // run.world_size)
    for rank, report in enumerate(run.reports):
        if len(report.seen) > most:
            return f"rank {rank} gave its model {len(report.seen)} of {samples} samples; at most {most} are its own"
    rows = [tuple(row) for report in run.reports for row in report.seen]
    if len(rows) != samples or len({*rows}) < samples:
        return f"the ranks took {len({*rows})} of the {samples} samples, in {len(rows)} rows"
    return None


@of(harness=gradients_of_part, built_from=())
def loss_of_part(check):
    n = check.world_size
    even, uneven = check.run(samples=6 * n, seed=1), check.run(samples=6 * n + 1, seed=2)
    few = check.run(samples=max(1, n - 1), seed=3)
    check.that("the mean of the gradients is that of the whole batch", even, mean_is_that_of_the_whole_batch, weight=2)
    check.that("also when N does not divide it", uneven, mean_is_that_of_the_whole_batch, weight=2)
    check.that("and each sample is on one rank, as many on each as can be", [even, uneven], each_sample_once, weight=2)
    check.that("fewer samples than ranks", few, each_sample_once)
    check.on_nccl(even, mean_is_that_of_the_whole_batch)
    draw = yield
    others = check.runs(ranks=(1, 2, 3, 5), samples=draw.randrange(6, 30), seed=draw.randrange(999))
    single = check.run(samples=1, seed=draw.randrange(999), ranks=4)
    check.that("other numbers of ranks and samples, a single one too", [*others, single], each_sample_once, weight=4)


# ---- a common start


def state_after_start(start_alike: Callable, seed: int, **model: Any) -> dict:
    """On a rank: what is after ``start_alike`` in the memory that the parameters and buffers had before."""
    module = Model(seed + dist.get_rank(), **model)
    state = {name: t.detach() for name, t in (*module.named_parameters(), *module.named_buffers())}
    trained = [*module.trained()]
    start_alike(module)
    if [*module.trained()] != trained:
        raise ValueError("start_alike changed which parameters require a gradient, and left it so")
    return {"state": state}


@of(harness=state_after_start, built_from=("broadcast",))
def start_alike(check):
    def first(run, rank=0):
        return {"state": _state(Model(**run.case.options | {"seed": run.option("seed") + rank}))}

    def its_own(run, rank):
        return {"is still its own: rank 0's did not come, or not into the memory that it had": first(run, rank)}

    right = is_right(lambda run, _: first(run), "state", mistakes=its_own, tolerance=0)
    by_one_each = given(right)(
        operations_are(
            lambda run: [("broadcast", t.nbytes) for t in first(run)["state"].values()],
            among=lambda run, rank: [op for op in run.operations[rank] if op.kind == "broadcast"],
        )
    )
    plain, frozen = check.run(seed=1), check.run(seed=2, frozen=(1,))
    inside, tied = check.run(seed=4, buffer_in=(1, 2), gain=True), check.run(seed=3, hidden=(7, 7, 7), tied=(1, 2))
    check.that("parameters and buffers are rank 0's", plain, right, weight=3)
    check.that("frozen parameters and buffers of modules inside too", [frozen, inside], right, weight=3)
    check.that("by one broadcast for each tensor", [plain, frozen, tied, inside], by_one_each)
    check.on_nccl(plain, right)
    draw = yield
    model: dict[str, Any] = {"hidden": _widths(draw), "frozen": (0, 2), "buffer_in": (draw.randrange(3),), "gain": True}
    others = check.runs(ranks=other_ranks(draw), seed=draw.randrange(999), **model)
    check.that("another model, on 1 rank and others", others, by_one_each, weight=3)


# ---- training: the hooks, and the three classes

RATE, STEPS = 0.1, 3
LAST = "after three steps, of which the first was right, "  # as the first step's gradients have been compared then
NOT_OF_THE_MODEL = ("cap", "passes", "last_skips", "awkward")  # options of ``train``


def train(
    wrap: Callable, *, seed: int, cap: int | None = None, passes: int = 1, last_skips: tuple = (),
    awkward: bool = False, **model: Any,
) -> dict:  # fmt: skip
    """On a rank: three steps of SGD with ``wrap(Model(seed, **model), cap)``, and what there is to report of them.

    Without a ``cap`` of buckets ``wrap`` changes the model itself, and the ranks' models begin alike. With it, all
    backward passes of a step but the last are inside ``no_sync()``. The last one does not use the layers
    ``last_skips``. ``awkward``: all is inside another model's ``no_sync``, and in each step there are exceptions
    inside ``no_sync``, in one that stands in another one, and after it.

    Reported are the model at the ``start`` and at the ``end``, and the ``gradients`` of the first step (after a wrong
    step all that follows is wrong); when training ``began``; and of the last ``passes`` of the steps when the backward
    pass came to each layer (``begun``) and was ``over``.
    """

    def wrapped_model(seed):
        if cap:
            module = Model(seed + dist.get_rank(), **model)
            return module, wrap(module, cap)
        module = Model(seed, **model)
        wrap(module)
        return module, module

    module, wrapped = wrapped_model(seed)
    _, other = wrapped_model(seed + 1000)  # never trained: shows what belongs to the class and not to the model
    report: dict[str, Any] = {"start": _state(module, "at the start "), "passes": [], "began": time.time()}
    if awkward:
        _end_by_an_exception(wrapped.no_sync)
    with other.no_sync() if awkward else nullcontext():
        for step in range(STEPS):
            *first, last = _losses(module, wrapped, seed + 100 * step, dist.get_rank(), passes, last_skips)
            with wrapped.no_sync() if first and cap else nullcontext():
                for loss in first:
                    loss.backward()
                    if awkward:
                        _end_by_an_exception(wrapped.no_sync)
            if awkward:
                _end_by_an_exception(wrapped.no_sync)
            module.begun.clear()
            last.backward()
            report["passes"].append({"over": time.time(), "begun": dict(module.begun)})
            if cap:
                wrapped.finish()
            report.setdefault("gradients", _gradients(module))
            _step(module)
            module.zero_grad(set_to_none=step % 2 == 0)  # both ways of torch
    return report | {"end": _state(module, LAST)}


def _losses(module, forward, seed, rank, passes, last_skips, ranks=None):
    """The losses of the passes of a step. What counts for ``no_sync`` is where the backward pass is made."""
    skipped = module.skipped
    for i in range(passes):
        module.skipped = skipped + last_skips * (i == passes - 1)
        yield loss_of(forward, seed + i, rank, ranks or dist.get_world_size())
    module.skipped = skipped


def _end_by_an_exception(no_sync):
    for kind in (KeyError, KeyboardInterrupt):
        try:
            with no_sync():
                raise kind
        except kind:
            continue
        raise RuntimeError("no_sync kept to itself an exception that was raised inside: let it go on")


def _gradients(module):
    trained = module.trained().items()
    return {f"the gradient of {name}": None if p.grad is None else p.grad.clone() for name, p in trained}


@torch.no_grad()
def _step(module):
    """One of SGD; torch.optim takes a second to import."""
    for p in module.trained().values():
        if p.grad is not None:
            p -= RATE * p.grad


def model_of(case: dict) -> Model:
    return Model(**{name: value for name, value in case.items() if name not in NOT_OF_THE_MODEL})


@in_one_process
def alone(n, only=None, passes=1, last_skips=(), **case):
    """An oracle of ``train``: one process does the parts of all ranks; or that of rank ``only``, as if alone."""
    module, parts = model_of(case), range(n) if only is None else (only,)
    report: dict[str, Any] = {"start": _state(module, "at the start ")}
    for step in range(STEPS):
        for p in module.trained().values():
            p.grad = torch.zeros_like(p)  # which it stays where nobody uses the parameter
        for rank in parts:
            for loss in _losses(module, module, case["seed"] + 100 * step, rank, passes, last_skips, n):
                (loss / len(parts)).backward()
        report.setdefault("gradients", _gradients(module))
        _step(module)
    return [report | {"end": _state(module, LAST)}] * n


def _not_averaged(run, rank):
    own = {"gradients": alone(run, rank, only=rank)["gradients"]} if run.world_size > 1 else {}
    return {"is that of its own part: it was not averaged": own}


as_one_process = is_right(alone, "start", "gradients", "end", mistakes=_not_averaged)


def buckets_of(run: Run) -> list[dict[str, int]]:
    """Of each bucket of the run's model ``{parameter's name: bytes}``; without a cap each parameter is one."""
    sizes = {name: p.nbytes for name, p in model_of(run.case.options).trained().items()}
    names, found = [*sizes], assignment([*sizes.values()], run.option("cap", 1))
    return [{names[i]: sizes[names[i]] for i in members} for members in found]


def _in_steps(run, rank):
    """What a rank did in its steps, in the order of the calls: not the broadcasts before."""
    return [op for op in run.operations[rank] if op.start >= run.reports[rank].began]


def _each_bucket_once(run):
    times = STEPS * (1 if run.option("cap") else run.option("passes", 1))
    return times * [("all_reduce", sum(bucket.values())) for bucket in buckets_of(run)]


one_all_reduce_a_bucket = given(as_one_process)(operations_are(_each_bucket_once, among=_in_steps))


def _while_backward_runs(run, rank):
    """A bucket leaves before the backward pass comes to the next layer. It is waited for when that is over."""
    buckets, passes = buckets_of(run), run.reports[rank].passes
    for i, op in enumerate(_in_steps(run, rank)):
        step, number = divmod(i, len(buckets))
        layer = min(int(name.split(".")[1]) for name in buckets[number])
        which, begun = f"in step {step + 1} bucket {number + 1} of {len(buckets)}", passes[step]["begun"]
        after = [i for i in begun if i < layer]
        if after:
            late = f"{which}, full when layer {layer} was done, left when layer {max(after)} had begun"
            yield op.start, begun[max(after)], late
        if op.wait is not None:
            yield passes[step]["over"], op.wait, f"{which} was waited for before the backward pass was over"


leaves_while_backward_runs = given(one_all_reduce_a_bucket)(in_order(_while_backward_runs))


@of(harness=train, built_from=("all_reduce",))
def average_in_hooks(check):
    plain, frozen = check.run(seed=1), check.run(seed=2, frozen=(1,))
    tied = check.run(seed=3, hidden=(7, 7, 7), tied=(1, 2), gain=True)
    twice = check.run(seed=5, passes=2)
    check.that("gradients are the mean, and three steps those of one process", plain, as_one_process, weight=2)
    check.that("also with frozen and tied parameters, one in no layer", [frozen, tied], as_one_process, weight=2)
    check.that("two backward passes add up", twice, as_one_process)
    every = [plain, frozen, tied, twice]
    check.that("one all-reduce for each trained parameter and pass", every, one_all_reduce_a_bucket, weight=2)
    draw = yield
    case: dict[str, Any] = {"hidden": _widths(draw), "frozen": draw.choice(((), (1,))), "seed": draw.randrange(999)}
    others = check.runs(ranks=other_ranks(draw), **case)
    check.that("another model, on 1 rank and others", others, one_all_reduce_a_bucket, weight=4)


ALLOWED = ("broadcast", "all_reduce")


@of(harness=train, built_from=ALLOWED)
def overlapped(check):
    each_layer, larger, one = (check.run(seed=i, cap=cap) for i, cap in enumerate((100, 600, 100_000), 1))
    frozen, tied = check.run(seed=4, cap=300, frozen=(1,)), check.run(seed=5, cap=150, hidden=(7, 7, 7), tied=(1, 2))
    others = [larger, one, frozen, tied]
    check.that("three steps are those of one process", each_layer, as_one_process, weight=2)
    check.that("with larger buckets, one, a frozen layer, tied parameters", others, as_one_process, weight=2)
    whole = "one all-reduce a bucket and step, of all its bytes"
    check.that(whole, [each_layer, larger, one], one_all_reduce_a_bucket, weight=2)
    early = "a bucket leaves before backward comes to the next layer; all waits come after it"
    check.that(early, [each_layer, larger], leaves_while_backward_runs, weight=3)
    check.on_nccl(each_layer, as_one_process)
    draw = yield
    model: dict[str, Any] = {"seed": draw.randrange(999), "hidden": _widths(draw, 4)}
    others = check.runs(ranks=other_ranks(draw), cap=draw.randrange(100, 500), **model)
    check.that("another model, on 1 rank and others", others, leaves_while_backward_runs, weight=4)


@of(harness=train, built_from=ALLOWED)
def accumulating(check):
    passes = [check.run(seed=1, cap=300, passes=3), check.run(seed=2, cap=100_000, passes=2)]
    awkward = check.run(seed=3, cap=300, passes=3, awkward=True)
    check.that("the step is that of the sum of all passes", passes, as_one_process, weight=2)
    check.that("one all-reduce a bucket, and nothing inside no_sync", passes, one_all_reduce_a_bucket, weight=3)
    also = "also after exceptions in it, where one is in another, and inside another model's no_sync"
    check.that(also, awkward, one_all_reduce_a_bucket, weight=2)
    check.on_nccl(passes[0], as_one_process)
    draw = yield
    model: dict[str, Any] = {"seed": draw.randrange(999), "hidden": _widths(draw, 2)}
    case = {"cap": draw.randrange(100, 500), "passes": draw.randrange(2, 6)}
    several = check.runs(ranks=other_ranks(draw), **case, **model)
    check.that("another model, on 1 rank and others", several, leaves_while_backward_runs, weight=4)


@of(harness=train, built_from=ALLOWED)
def ddp(check):
    seven: dict[str, Any] = {"hidden": (7, 7, 7, 7), "cap": 200}
    all_used = check.run(seed=1, cap=100, double=(1,))  # layer 1 is two buckets, and the second is full first
    never, some = check.run(seed=2, skipped=(2,), **seven), check.run(seed=3, skipped_on_odd=(2,), **seven)
    added_up = check.run(seed=5, passes=2, last_skips=(2,), **seven)
    check.that(
        "as before where all are used: overlapped, one all-reduce a bucket", all_used, leaves_while_backward_runs
    )
    check.that("a layer that no rank uses, or that odd ranks do not use", [never, some], as_one_process, weight=3)
    check.that("added up inside no_sync, not used in the last pass", added_up, as_one_process)
    check.on_nccl(all_used, as_one_process)
    draw = yield
    layers: dict[str, Any] = {"skipped": (draw.choice((1, 2)),), "skipped_on_odd": (draw.choice((3, 4)),)}
    layers |= {"hidden": (draw.randrange(5, 9),) * 5, "seed": draw.randrange(999)}
    several = check.runs(ranks=other_ranks(draw), cap=draw.choice((1, 150)), **layers)
    check.that("several layers, on 1 rank and others", several, one_all_reduce_a_bucket, weight=4)


# ---- buckets


def assignment(sizes: list[int], cap: int) -> list[list[int]]:
    """Torch's own assignment of parameters of these sizes in bytes to buckets of ``cap`` bytes, last one first."""
    tensors = [torch.empty(size, dtype=torch.uint8, device="cpu") for size in reversed(sizes)]
    found, _ = dist._compute_bucket_assignment_by_size(tensors, [cap], [False] * len(tensors))
    return [[len(sizes) - 1 - i for i in bucket] for bucket in found]


def assigned_as_torch_does(run: Run) -> str | None:
    """Called with sizes and a cap in bytes, the function returned torch's own buckets."""
    got = run.returned[0]
    if not isinstance(got, (list, tuple)) or not all(isinstance(bucket, (list, tuple)) for bucket in got):
        return f"returned {str(got)[:60]}, not a list of lists"
    for i, (bucket, right) in enumerate(zip_longest(got, assignment(*run.case.args), fillvalue="none")):
        if [*bucket] != right:
            return f"bucket {i} is {str(bucket)[:60]}, expected {str(right)[:60]}: returned {str(got)[:60]}"
    return None


@on_paper(assigned_as_torch_does)
def assign():
    draw = yield {
        "40, 10, 30 and 20 bytes, cap 50": [([40, 10, 30, 20], 50)],
        "10, 100, 30 and 20 bytes, cap 60, which a bucket may exceed": [([10, 100, 30, 20], 60)],
        "buckets that are exactly full": [([8, 8, 8, 8, 8], 16)],
        "a cap above all of them, and one below each": [([40, 10, 30, 20], cap) for cap in (1000, 1)],
    }
    sizes = [draw.randrange(1, 5000) for _ in range(draw.randrange(40, 80))]
    caps = (sum(sizes[-2:]), 3_000, 10_000, 40_000)
    yield {"many parameters, as torch would": [*((sizes, cap) for cap in caps), ([7], 7)]}


def fill_and_reduce(bucket_class: Any, shapes: tuple, without: tuple = ()) -> dict:
    """On a rank: one bucket used twice; parameter ``without[rank]`` gets no gradient the second time.

    Odd ranks put the first parameter first, the others the last one. Reported are the ``gradients``, when launch() had
    ``launched``, what is in the gradients when ones are written into flat, and in words what is wrong with ``missing``.
    """
    rank, wrong = dist.get_rank(), []
    parameters = [torch.nn.Parameter(torch.zeros(shape)) for shape in shapes]
    bucket = bucket_class(list(parameters))
    flat, order = bucket.flat, [*enumerate(parameters)][:: 1 if rank % 2 else -1]

    def must_be_missing(some, when):
        if {id(p) for p in bucket.missing} != {id(p) for _, p in some}:
            wrong.append(f"{when} missing holds others than those {len(some)} that were not put yet")

    for turn in (0, 1):
        must_be_missing(order, f"before use {turn + 1}")
        for place, (i, p) in enumerate(order, 1):
            none = turn == 1 and i in without[rank : rank + 1]
            gradient = None if none else _gradient_of(shapes, i, rank, turn).to(p.device)
            if p.grad is None or gradient is None or i % 2:
                p.grad = gradient
            else:  # in place, as the backward pass does where zero_grad kept it
                p.grad.copy_(gradient)
            bucket.put(p)
            must_be_missing(order[place:], f"after put() of parameter {i}")
        bucket.launch()
        launched = time.time()
        bucket.wait()
    must_be_missing(order, "after the last wait()")
    gradients = [p.grad if p.grad is None else p.grad.clone() for p in parameters]
    flat.fill_(1.0)
    return {"gradients": gradients, "launched": launched, "views": [p.grad for p in parameters], "missing": wrong}


def _gradient_of(shapes, i, rank, turn=1):
    return numbers(shapes[i], 1000 * rank + 10 * i + turn)


def means(run: Run, _: int) -> Values:
    """An oracle of ``fill_and_reduce``: a rank without a gradient counts as zeros."""
    shapes, without, found = run.option("shapes"), run.option("without", ()), {}
    for i in range(len(shapes)):
        of_each = [_gradient_of(shapes, i, r) * (i not in without[r : r + 1]) for r in range(run.world_size)]
        found[f"the gradient of parameter {i}"] = torch.stack(of_each).mean(0)
    return {"gradients": found, "views": {name: torch.ones_like(mean) for name, mean in found.items()}}


@of(harness=fill_and_reduce, built_from=("all_reduce",))
def bucket(check):
    def one_each_time(run):
        return 2 * [("all_reduce", 4 * sum(torch.Size(shape).numel() for shape in run.option("shapes")))]

    def around_launch(run, rank):
        for last in run.operations[rank][-1:]:
            yield last.start, run.reports[rank].launched, "nothing had started when launch() returned"
            if last.wait is not None:
                yield run.reports[rank].launched, last.wait, "launch() waited for its all-reduce, or it was not async"

    right = is_right(means, "gradients")
    one_message = given(right)(operations_are(one_each_time))
    views = given(right)(is_right(means, "views", hint=": what is written into the first flat does not show there"))
    early = given(one_message)(in_order(around_launch))
    two, none = check.run(shapes=((5, 3), (5,))), check.run(shapes=((5, 3), (5,)), without=(0, 1))
    four = check.run(shapes=((5, 3), (5,), (), (4, 1)))
    check.that("after wait() every gradient is the mean", two, right, weight=2)
    check.that("of any shape, put in any order; zeros where there was none", [four, none], right, weight=2)
    check.that("one all-reduce each time, of all bytes", [two, four], one_message, weight=2)
    check.that("launch() does not wait for it", two, early, weight=2)
    check.that("gradients are views of flat, which is made once", [two, four], views, weight=2)
    check.that("missing: what has not been put, and all again after wait()", two, nothing_said("missing"))
    check.on_nccl(two, right)
    draw = yield
    shapes = (draw.choice(((), (1,))), (draw.randrange(2, 9), draw.randrange(2, 9)), (draw.randrange(1, 9),))
    others = check.runs(ranks=other_ranks(draw), shapes=shapes)
    holes = check.runs(ranks=(1, 3), shapes=shapes, without=tuple(draw.randrange(3) for _ in range(3)))
    right = all_of(early, views)
    check.that("other shapes and numbers of ranks; without some gradients", [*others, *holes], right, weight=4)
