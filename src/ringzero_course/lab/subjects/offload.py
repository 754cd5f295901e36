"""Lab 10, past the GPU's memory: AdamW on the host, and a window of layers. ``quantised`` has its second half.

All is in the two memories of ``Tiers``. A layer is known by its size there, so all sizes differ.
"""

from itertools import pairwise, product
from typing import NamedTuple

import torch

from ringzero.costs.offload import window_seconds
from ringzero_course.lab.claims.answers import gives
from ringzero_course.lab.claims.collectives import all_of, given
from ringzero_course.lab.claims.oracle import holds_at_most, in_one_process, is_right, stays
from ringzero_course.lab.claims.order import END, out_of_order
from ringzero_course.lab.harness import returned
from ringzero_course.lab.harness.training import numbers
from ringzero_course.lab.specification import MANY, of
from ringzero_course.lab.subjects.plain import on_paper
from ringzero_course.lab.tiers import Tiers
from ringzero_course.lab.unaided import FORMATS, unaided

OWN = "ringzero.zero", "ringzero.costs", FORMATS  # where the library has what the lab asks for


# ---- 1. What is where


def bytes_by_tier(params, n, layer, states="device", parameters="device", precision="mixed"):
    """A gathered layer, gradients where the step is, masters and states; and parameters that are not the masters."""
    each, shard = 2 if precision == "mixed" else 4, params / n
    held = {"device": each * layer, "host": 0.0, "file": 0.0}
    held["device" if states == "device" else "host"] += each * shard
    held[states] += 12 * shard
    held[parameters] += each * shard if precision == "mixed" or parameters != states else 0
    return tuple(held.values())


PLACES = ("device", "device"), ("host", "device"), ("host", "host"), ("file", "device"), ("file", "host"), ("file",) * 2


@on_paper(gives(("what is on the device", "what is on the host", "what is in the file"), bytes_by_tier))
def tier_bytes():
    ten, layer, kinds = 10_000_000_000, 300_000_000, ("mixed", "fp32")
    on_disk = [(1001, 3, 80, "file", where, kind) for where in ("host", "file") for kind in kinds]
    draw = yield {
        "all on the device": [(ten, 8, layer)],
        "masters and states on the host": [(ten, 1, layer, "host")],
        "parameters too, in mixed precision and in fp32": [(ten, 1, layer, "host", "host", kind) for kind in kinds],
        "states in a file, parameters on the host or in the file too, 3 ranks": on_disk,
    }
    every = product(PLACES, kinds, (1, 3))
    others = [(draw.randrange(10**7), n * draw.randint(1, 9), draw.randrange(10**5), *p, kind) for p, kind, n in every]
    yield {"every placement, in mixed precision and in fp32": others}


# ---- 2. and 3. AdamW on the host

SIZES = (140, 48, 192, 80, 252, 120, 96, 200)
BYTES_PER_SECOND = 2000.0  # of the link, each way: 1,000 numbers of 16 bits
STEPS_PER_SECOND, BACKWARDS_PER_SECOND = 800.0, 500.0  # parameters
ADAMW = {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.3}  # none is AdamW's default


class Training(NamedTuple):
    """Steps of a model each of whose layers has one parameter: bf16, or fp32 at the places ``fp32``.

    ``order`` is that in which the forward pass uses them. Those of ``without``, (step, place), have no gradient then.
    """

    seed: int
    sizes: tuple = SIZES
    fp32: tuple = ()
    steps: int = 3
    passes: int = 1  # backward passes before each step
    order: tuple = ()
    without: tuple = ()

    def start(self, i):
        """What parameter i begins with."""
        return numbers((self.sizes[i],), 1000 * self.seed + i).to(torch.float32 if i in self.fp32 else torch.bfloat16)

    def gradients(self, i, step):
        """Of each backward pass: in whole 1024ths, so that sums in any order are exact."""
        seeds = [1000 * self.seed + 50 * (self.passes * step + turn) + i for turn in range(self.passes)]
        whole = [(1024 * numbers((self.sizes[i],), seed)).round() / 1024 for seed in seeds]
        return [g.to(self.start(i).dtype) for g in whole] if (step, i) not in self.without else []

    def used(self, step):
        """The places whose parameters have a gradient, in the order of the forward pass."""
        return [i for i in self.order or range(len(self.sizes)) if (step, i) not in self.without]

    def bytes(self, step=0):
        """Of each parameter that has a gradient in this step; in step 0 of all."""
        return [self.start(i).nbytes for i in self.used(step)]


class Layer(torch.autograd.Function):
    """A layer whose gradient is made when the backward pass comes to it."""

    @staticmethod
    def forward(ctx, before, parameter, tiers, gradient):
        ctx.tiers, ctx.gradient = tiers, gradient
        return before.clone()

    @staticmethod
    def backward(ctx, gradient):
        numel = ctx.gradient.numel()
        ctx.tiers.compute("backward", numel, numel / BACKWARDS_PER_SECOND)
        return gradient, ctx.tiers.on_device(ctx.gradient.clone()), None, None


def train(make, **options):
    """The parameters after some steps with ``make(parameters, link, **adamw)``, and whether they are where they were.

    ``bytes``, when made and in each step: copied to the host, to the device, and left there. Of the last step: the
    device's ``peak`` in the backward passes, and ``events`` and ``seconds`` of these and of the rest.
    """
    case, moved = Training(**options), []
    with unaided(*OWN), Tiers(BYTES_PER_SECOND, STEPS_PER_SECOND) as tiers:
        parameters = [torch.nn.Parameter(tiers.on_device(case.start(i))) for i in range(len(case.sizes))]
        memory, link = [p.data_ptr() for p in parameters], tiers.link
        optimizer = make(parameters, link, **ADAMW)
        moved.append((link.bytes_to_host, link.bytes_to_device, tiers.held["device"]))
        for step in range(1, case.steps + 1):
            first, began = len(tiers.events), tiers.now
            link.bytes_to_host = link.bytes_to_device = 0
            tiers.start_peaks()
            for turn in range(case.passes):
                go_back(case, parameters, step, turn, tiers)
            peak, middle, between = tiers.peak["device"], len(tiers.events), tiers.now
            optimizer.step()
            moved.append((link.bytes_to_host, link.bytes_to_device, tiers.held["device"]))
        kept, seconds = memory == [p.data_ptr() for p in parameters], [between - began, tiers.now - between]
        events = [[list(event) for event in some] for some in (tiers.events[first:middle], tiers.events[middle:])]
    report = {"parameters": [p.detach() for p in parameters], "kept": kept, "bytes": moved, "peak": peak}
    return report | {"events": events, "seconds": seconds}


def go_back(case, parameters, step, turn, tiers):
    loss = tiers.on_device(torch.zeros((), requires_grad=True))
    for i in case.used(step):
        loss = Layer.apply(loss, parameters[i], tiers, case.gradients(i, step)[turn])
    loss.backward()


@in_one_process
def alone(n, optimizer=torch.optim.AdamW, **options):
    """The parameters in the end, from torch's AdamW on fp32 masters in one memory."""
    case = Training(**options)
    masters = [torch.nn.Parameter(case.start(i).float()) for i in range(len(case.sizes))]
    optimizer = optimizer(masters, **ADAMW)
    for step in range(1, case.steps + 1):
        for i, p in enumerate(masters):
            p.grad = sum(g.float() for g in case.gradients(i, step)) if i in case.used(step) else None
        optimizer.step()
    rounded = [p.detach().to(case.start(i).dtype).float() for i, p in enumerate(masters)]
    return [{"parameters": {f"parameter {i}": p for i, p in enumerate(rounded)}}]


as_adamw = is_right(
    alone,
    "parameters",
    hint="; right is AdamW(masters, **adamw) in fp32, with the gradients of this step, and no master is ever rounded",
    mistakes=lambda run, rank: {
        "is that of torch's Adam, whose decay goes into the gradient": alone(run, rank, optimizer=torch.optim.Adam)
    },
    tolerance=0,
)


@given(as_adamw)
def is_lean(run):
    """Each gradient goes out, each parameter comes back, into the memory where it was; nothing else is left there."""
    report, case = run.reports[0], Training(**run.case.options)
    if not report.kept:
        return "a parameter has other memory now; write into that which it has, with copy_"
    whole, words = sum(case.bytes()), ("were copied to the host", "were copied to the device", "are on the device")
    for step, noted in enumerate(report.bytes):
        stepped = sum(case.bytes(step))
        due = (case.passes * stepped, stepped, whole) if step else (whole, 0, whole)
        for what, got, right in zip(words, noted, due, strict=True):
            if got != right:
                return f"{f'in step {step}' if step else 'in __init__'} {got:,} bytes {what}, expected {right:,}"
    return None


def in_step(rules):
    """A claim: the events of the last step are in the order of ``rules(order)``.

    ``order`` are the sizes of the layers in the order in which the backward pass is done with them.
    """

    def claim(run):
        case, (backward, rest) = Training(**run.case.options), run.reports[0].events
        order = [case.sizes[i] for i in reversed(case.used(case.steps))]
        return out_of_order([*backward, *rest], rules(order), case.sizes)

    return given(as_adamw)(claim)


def leaves_at_once(order):
    """The copy of a gradient begins before the backward pass comes to the next layer. Nobody waits there."""
    for one, then in pairwise(order):
        yield ("to_host", one), ("backward", then)
    for one in order:
        yield ("backward", order[-1]), ("wait to_host", one)
        yield ("to_host", order[-1]), ("wait to_host", one)


def steps_while_copies_go_on(order):
    """One layer is stepped after another: the one before goes back meanwhile, the gradients after it come."""
    for one in order:
        yield ("step", one), END
        yield ("wait to_host", one), ("step", one)
    for one, then in pairwise(order):
        yield ("step", one), ("step", then)
        yield ("step", one), ("wait to_host", then)
        yield ("to_device", one), ("step", then)
    for one in order:
        yield ("step", order[-1]), ("wait to_device", one)
        yield ("wait to_device", one), END


def in_the_backward_pass(run, rank):
    sizes = Training(**run.case.options).bytes()
    hint = f"{sum(sizes):,} are parameters, and the largest gradient is {max(sizes):,}"
    yield "in the backward pass", run.reports[rank].peak, sum(sizes) + 3 * max(sizes), hint


def drawn(draw, layers, **case):
    """A model of both types."""
    return case | {"seed": draw.randrange(MANY), "sizes": tuple(draw.sample(range(15, 120), layers)), "fp32": (1,)}


@of(harness=train, built_from=(), ranks=1)
def host_adam(check):
    bf16, fp32 = check.run(seed=1), check.run(seed=2, fp32=tuple(range(8)), steps=2)
    some = [check.run(seed=3, sizes=(30, 7, 50), fp32=(1,), without=((step, 2),)) for step in (1, 2)]
    check.that("three steps in bf16 are AdamW's, to the last bit", bf16, as_adamw, weight=2)
    check.that("two steps in fp32", fp32, as_adamw)
    check.that("no more is copied than asked for, and nothing else is on the device", [bf16, fp32], is_lean, weight=2)
    check.that("both types, and one has no gradient in the first step, or in the second", some, is_lean)
    draw = yield
    others = [check.run(**drawn(draw, 5, steps=steps)) for steps in (1, 5)]
    check.that("other models, one step and five", others, is_lean, weight=2)
    some = [check.run(**drawn(draw, 4, without=((step, draw.randrange(4)),))) for step in (1, 2, 3)]
    check.that("what has no gradient is not stepped", some, is_lean)


@of(harness=train, built_from=(), ranks=1)
def overlapped(check):
    leaves = all_of(in_step(leaves_at_once), holds_at_most(in_the_backward_pass))
    steps = in_step(steps_while_copies_go_on)
    one, twice = check.run(seed=1), check.run(seed=2, sizes=(192, 140, 191, 252), passes=2)
    turned = check.run(seed=3, sizes=(60, 40, 90, 25), fp32=(0,), order=(2, 0, 3, 1), without=((1, 3),))
    check.that("three steps are AdamW's, to the last bit; lean and cheap as before", one, is_lean)
    check.that("a gradient leaves before the next layer's is computed, and its memory is free", one, leaves, weight=2)
    check.that("a layer comes back while the next one is stepped", one, steps, weight=2)
    check.that("a second backward pass adds to the first", twice, is_lean)
    whole = all_of(is_lean, leaves, steps)
    check.that("layers that are used in another order, one of them not in the first step", turned, whole)
    draw = yield
    check.that("three passes, as lean", check.run(**drawn(draw, 5, passes=3, steps=2)), is_lean)
    orders = [tuple(draw.sample(range(4), 4)) for _ in range(3)]
    others = [check.run(**drawn(draw, 4, order=order, without=((i, order[0]),))) for i, order in enumerate(orders, 1)]
    check.that("other models, orders and steps without a gradient", others, whole, weight=2)


# ---- 4. A window of layers

WIDTHS = (24, 30, 28, 31, 27, 32, 29, 26)
WINDOW_BYTES_PER_SECOND = 4000.0  # 1,000 numbers of fp32
FORWARDS_PER_SECOND = 800.0  # parameters; a backward pass comes by half as many


def sizes_of(widths):
    """How many parameters each layer has: layer i multiplies by a matrix, and takes the tanh."""
    return [rows * columns for rows, columns in pairwise(widths)]


def vectors_of(seed, widths):
    """The layers' parameters, the first layer's input, and the gradient of the last one's output."""
    vectors = [numbers((m * n,), 100 * seed + i) / m**0.5 for i, (m, n) in enumerate(pairwise(widths))]
    return vectors, numbers((2, widths[0]), 100 * seed + 80), numbers((2, widths[-1]), 100 * seed + 81)


def output_of(vector, x):
    return torch.tanh(x @ vector.view(x.shape[-1], -1))


def gradients_of(vector, x, gradient):
    """Of a layer's input and of its vector, where that of its output is ``gradient``."""
    matrix = vector.view(x.shape[-1], -1)
    inner = gradient * (1 - torch.tanh(x @ matrix).square())
    return inner @ matrix.T, (x.T @ inner).reshape(-1)


def through(forward, backward, *, seed, k, widths=WIDTHS, back=False):
    """A forward pass through a window of ``k`` layers and, with ``back``, a backward pass: what came of each.

    Of each pass: how many layers were on the device at ``most``, its ``events``, and its ``seconds``.
    """
    vectors, x, last = vectors_of(seed, widths)
    with unaided(*OWN), Tiers(WINDOW_BYTES_PER_SECOND) as tiers:
        tiers.on_device(x), tiers.on_device(last)

        def computing(kind, work, per_second):
            def compute(i, vector, *others):
                tiers.compute(kind, vector.numel(), vector.numel() / per_second)
                return work(vector, *others)

            return compute

        def noted(name, function, *given):
            tiers.start_peaks()
            first, began = len(tiers.events), tiers.now
            one, several = returned.pair(name, "two values", function(vectors, *given))
            noted = {"most": tiers.most_arrived, "seconds": tiers.now - began}
            noted["events"] = [list(event) for event in tiers.events[first:]]
            return several, noted, [returned.must_be_a_tensor(name, each) for each in (*several, one)]

        compute = computing("forward", output_of, FORWARDS_PER_SECOND)
        inputs, noted_there, activations = noted("forward_through_window", forward, x, k, tiers.link, compute)
        report = {"forward": noted_there, "activations": activations, "given": vectors}
        if back:
            given = inputs, last, k, tiers.link, computing("backward", gradients_of, FORWARDS_PER_SECOND / 2)
            _, noted_back, gradients = noted("backward_through_window", backward, *given)
            report |= {"backward": noted_back, "gradients": gradients}
    return report


@in_one_process
def in_one_memory(n, *, seed, k, widths=WIDTHS, back=False):
    vectors, x, last = vectors_of(seed, widths)
    inputs = [x.requires_grad_()]
    for vector in vectors:
        inputs.append(output_of(vector.requires_grad_(), inputs[-1]))
    inputs[-1].backward(last)
    right = {"activations": {f"inputs[{i}]": x.detach() for i, x in enumerate(inputs[:-1])}}
    right["activations"]["the output"] = inputs[-1].detach()
    right["gradients"] = {f"gradients[{i}]": vector.grad for i, vector in enumerate(vectors)}
    right["gradients"]["the gradient of the first input"] = x.grad
    return [right | {"given": {f"vectors[{i}]": vector.detach() for i, vector in enumerate(vectors)}}]


def layers_of(run, name):
    """The sizes of the layers, in the order in which a pass takes them."""
    sizes = sizes_of(run.option("widths", WIDTHS))
    return sizes if name == "forward" else sizes[::-1]


def in_the_window(name):
    """A claim: in the pass of this name at most k layers are on the device, and each is copied once."""

    def claim(run):
        noted, order = run.returned[0][name], layers_of(run, name)
        if noted["most"] > run.option("k"):
            return f"{noted['most']} layers were on the device at one time; the window is {run.option('k')}"
        copied = [numel for kind, numel, *_ in noted["events"] if kind == "to_device"]
        if copied != order:
            return f"layers of {copied} numbers were copied to the device, expected {order}: each once, as it is needed"
        return None

    return claim


def in_pass(name, rules):
    """A claim: the events of the pass of this name are in the order of ``rules(name, layers, k)``."""

    def claim(run):
        k, order = run.option("k"), layers_of(run, name)
        why = out_of_order(run.returned[0][name]["events"], rules(name, order, k), layers_of(run, "forward"))
        return why and f"{why}; the window is {k}"

    return claim


def beside_the_work(name, order, k):
    """When a layer is computed, copies for which there is room have begun, and nobody has waited for a later layer."""
    for place, numel in enumerate(order):
        yield ("wait to_device", numel), (name, numel)
        for later in order[place + 1 : place + k]:
            yield ("to_device", later), (name, numel)
        for later in order[place + 1 : place + 2]:
            yield (name, numel), ("wait to_device", later)


def gradients_go(name, order, k):
    """Each gradient begins to leave before the next layer is computed, and is waited for when all are."""
    for one, then in pairwise(order):
        yield ("to_host", one), (name, then)
    for numel in order:
        yield (name, order[-1]), ("wait to_host", numel)
        yield ("wait to_host", numel), END


@of(harness=through, uses=("backward_through_window",), built_from=(), ranks=1)
def window(check):
    there = [check.run(seed=k, k=k) for k in (1, 2, 3)]
    back = [check.run(seed=10 + k, k=k, back=True) for k in (1, 2, 3)]
    whole = []
    for name, group, runs in ("forward", "activations", there), ("backward", "gradients", back):
        right = all_of(is_right(in_one_memory, group), stays(in_one_memory))
        lean, beside = all_of(right, in_the_window(name)), all_of(right, in_pass(name, beside_the_work))
        check.that(f"{name}: the same values", runs, right)
        check.that(f"{name}: at most k layers on the device, each copied once", runs, lean, weight=2)
        check.that(f"{name}: copies go on while a layer is computed", runs, beside)
        whole += [lean, beside]
    leave = all_of(right, in_pass("backward", gradients_go))
    check.that("backward: gradients leave at once", back, leave)
    whole = all_of(*whole, leave)
    short = [check.run(seed=5, k=k, widths=widths, back=True) for k, widths in ((5, (20, 21, 19)), (2, (20, 21)))]
    check.that("2 layers in a window of 5, and a single layer", short, whole)
    draw = yield

    def other(layers, k):
        widths = tuple(draw.sample(range(18, 34), layers + 1))
        alike = len({*sizes_of(widths)}) < layers
        return other(layers, k) if alike else check.run(seed=draw.randrange(MANY), k=k, widths=widths, back=True)

    few = [other(3, k) for k in (1, 2, 3, draw.randint(4, 9))]
    many = [other(draw.randint(9, 13), k) for k in (4, draw.randint(5, 8))]
    check.that("3 layers and many, windows from 1 to 9", [*few, *many], whole, weight=2)


# ---- 5. How large a window?


def smallest(copies, computes):
    """The smallest window that loses no time, and the seconds."""
    seconds = [window_seconds(copies, computes, k) for k in range(1, len(copies) + 1)]
    return next((k, took) for k, took in enumerate(seconds, 1) if took <= seconds[-1] * (1 + 1e-12))


@on_paper(gives(("the window", "the seconds"), smallest))
def smallest_window():
    in_the_last_bits = [0.3, 0.3, 0.1, 0.1, 0.3, 0.7], [0.1, 0.2, 0.3, 0.3, 0.3, 0.2]
    draw = yield {
        "layers of one size": [([1.0] * 7, [1.0] * 7), ([2.0] * 6, [1.0] * 6), ([1.0] * 6, [2.0] * 6)],
        "a layer of six times the size": [([1.0, 1, 1, 6, 1, 1], [2.0] * 6)],
        "a very large layer behind nine small ones": [([0.1] * 9 + [7.5, 0.1], [1.0] * 11)],
        "a single layer, and no time to copy": [([3.0], [2.0]), ([0.0] * 4, [1.0] * 4)],
        "a larger window that is faster in the last bits only": [in_the_last_bits],
    }

    def tenths(layers, most):
        return [draw.randint(0, most) / 10 for _ in range(layers)]

    some, behind = (1, 2, *draw.choices(range(3, 13), k=12)), draw.choices(range(2, 21), k=4)
    yield {
        "uneven layers": [(tenths(n, 30), tenths(n, 20)) for n in some],
        "a large layer behind small ones": [([0.1] * n + [n - 1.5, 0.1], [1.0] * (n + 2)) for n in behind],
    }
