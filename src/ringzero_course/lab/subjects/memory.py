"""Lab 05, where the memory goes: Adam by hand, bytes by formula, recomputation, and the batch that fits."""

from functools import cache
from itertools import product

import torch
from torch.utils._pytree import tree_leaves

from ringzero.costs.page import memory as formulas
from ringzero.costs.page import transformer
from ringzero.record.memory import MemoryTimeline
from ringzero_course.lab.claims.answers import counts, gives, is_whole_number, plain_number
from ringzero_course.lab.claims.collectives import all_of
from ringzero_course.lab.claims.values import far_off
from ringzero_course.lab.harness.returned import must_be_a_tensor
from ringzero_course.lab.specification import of
from ringzero_course.lab.subjects.plain import on_paper
from ringzero_course.lab.unaided import unaided

# ---- Adam and AdamW, step by step

TOLERANCE = 1e-5  # in float64 too: with a count of steps in a tensor, 1 - beta ** step is a float32


def start_and_gradients(seed, shape, steps, dtype):
    """Where a parameter begins, and gradients: small, so that ε matters, and smaller and smaller; the third is 0."""
    source = torch.Generator("cpu").manual_seed(seed)
    start, *gradients = torch.randn(steps + 1, *shape, generator=source, dtype=torch.float64, device="cpu")
    return (0.1 * start).to(dtype), [(0.01 * g / t * (t != 3)).to(dtype) for t, g in enumerate(gradients, 1)]


def several_steps(step, seed, shape, steps, dtype, lies="row by row", /, **options):
    """Steps of two parameters in turn, each with a state of its own."""
    here, untouched = torch.get_default_device(), True
    start, gradients = start_and_gradients(seed, shape, steps, dtype)
    start = start if lies == "row by row" else start.mT.contiguous().mT
    parameters, states = [start.clone().to(here).requires_grad_() for _ in "12"], [{}, {}]
    places = [p.data_ptr() for p in parameters]
    with unaided("torch.optim"):
        for gradient in gradients:
            for parameter, state in zip(parameters, states, strict=True):
                mine = gradient.clone().to(here)
                step(parameter, mine, state, **options)
                untouched = untouched and torch.equal(mine, gradient.to(here))
    arrays = [torch.as_tensor(leaf) for leaf in tree_leaves(states[0]) if hasattr(leaf, "nbytes")]
    storages = [array.untyped_storage() for array in arrays]  # a buffer and views of it are one
    return {
        "ends": [p.detach() for p in parameters],
        "in_place": places == [p.data_ptr() for p in parameters] and all(p.requires_grad for p in parameters),
        "kept": sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values()),
        "untouched": untouched,
    }


def as_torch(make):
    """A claim: both parameters end where torch's optimizer ``make`` takes them, in the memory that they had."""

    def claim(run):
        report, (start, gradients) = run.reports[0], start_and_gradients(*run.case.args[:4])
        if not report.in_place:
            return "the parameter has other memory now, or is not trained any more: write into the memory that it has"
        right = start.clone()
        optimizer = make([right], **run.case.options)
        for right.grad in gradients:
            optimizer.step()
        first, second = (far_off("the parameter", end, right, TOLERANCE) for end in report.ends)
        why = f"after step {len(gradients)} {first or second}"
        options = {"weight_decay": optimizer.defaults["weight_decay"]} | run.case.options
        if first:
            return _mistake(report.ends[0], right, start, gradients, **options) or why
        about = "one parameter is right, another that is stepped in turn is not: has each a state of its own?"
        return f"{about} {why}" if second else None

    return claim


def _mistake(end, right, start, gradients, **options):
    """The usual mistake of which ``end`` is the result, as a sentence; None if it is no usual one."""
    if torch.equal(end.to(start.dtype), start):
        return "the parameter is what it was before: change it in place"
    decay = options["weight_decay"]
    for sentence, mistake in {
        "ε stands under the root here, and outside of it in the formula": {"inside": True},
        "the moments are not corrected: the hats are missing": {"hats": False},
        "betas[0] and betas[1] are exchanged": {"betas": options.get("betas", (0.9, 0.999))[::-1]},
        "there is no decay": {"weight_decay": 0.0},
        "the decay is added to the gradient: that is L2 regularisation": {"l2": True},
        "the parameter decays by λ, not by lr · λ": {"weight_decay": decay / options.get("lr", 1e-3)},
        "the parameter decays after Adam's step, not before it": {"late": True},
    }.items():
        wrong = end_of(start.double(), [g.double() for g in gradients], **options | mistake)
        if not far_off("", end, wrong, 3 * TOLERANCE) and far_off("", right, wrong, 30 * TOLERANCE):
            return sentence
    return None


def end_of(
    p, gradients, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, inside=False, hats=True, l2=False, late=False
):
    """Where AdamW, or Adam without decay, takes a parameter with a mistake in it."""
    m, v, kept = torch.zeros_like(p), torch.zeros_like(p), 1 - lr * weight_decay
    for t, g in enumerate(gradients, 1):
        p, g = (p, g + weight_decay * p) if l2 else (p if late else p * kept, g)
        m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
        m_hat, v_hat = (m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)) if hats else (m, v)
        p = p - lr * m_hat / ((v_hat + eps).sqrt() if inside else v_hat.sqrt() + eps)
        p = p * kept if late else p
    return p


def keeps_two_numbers_each(run):
    """The state holds two numbers a parameter, and perhaps a count of steps; the gradient is what it was."""
    _, shape, _, dtype, *_ = run.case.args
    size, kept = dtype.itemsize * torch.Size(shape).numel(), run.reports[0].kept
    if not 2 * size <= kept <= 2 * size + 64:
        name = str(dtype).removeprefix("torch.")
        held = f"the state's tensors have {kept:,} bytes, {kept / size:.3g} times the parameter's"
        return f"{held}, expected 2 times: both moments, as tensors of its type, {name}"
    return None if run.reports[0].untouched else "the gradient was changed: leave it as it is, others may need it"


def steps_of(make, **decay):
    """The specification of a step that is one of torch's optimizer ``make``."""
    usual, single, double = {"lr": 0.1, "betas": (0.9, 0.999), "eps": 1e-8} | decay, torch.float32, torch.float64
    right = as_torch(make)
    lean = all_of(right, keeps_two_numbers_each)

    @of(harness=several_steps, built_from=(), ranks=1)
    def specification(check):
        def run(*case, **options):
            return check.run(*case, **usual | options)

        check.that("the first step is torch's", run(1, (3, 4), 1, single), right)
        check.that(
            "so are 25, and two without options", [run(2, (3, 4), 25, single), check.run(3, (5,), 2, double)], right
        )
        check.that("and five with a large ε", run(4, (50,), 5, single, eps=1e-3), right)
        if decay:
            check.that("without decay it is Adam", run(5, (5, 2), 3, single, weight_decay=0.0), right)
        point = run(6, (), 6, double, lr=0.02, betas=(0.8, 0.95), eps=1e-4)
        turned = run(7, (4, 6), 3, single, "column by column")
        check.that("a single number in float64; a matrix that lies column by column", [point, turned], right)
        large = run(8, (200, 300), 4, single)
        check.that("the state is two numbers a parameter, and the gradient stays", [point, large], lean)
        draw = yield
        several = []
        for dtype in 4 * (single, double):
            options = {key: draw.choice((0.1, 0.3, 0.9)) for key in decay}
            options |= {"lr": draw.choice((0.01, 0.03, 0.3)), "eps": draw.choice((1e-2, 1e-3, 1e-5))}
            options |= {"betas": (draw.choice((0.0, 0.5, 0.8)), draw.choice((0.7, 0.9, 0.99)))}
            shape = tuple(draw.randint(1, 9) for _ in range(draw.randint(1, 3)))
            several.append(run(draw.randrange(10**6), shape, draw.randint(4, 30), dtype, **options))
        check.that("other shapes, rates, betas and ε", several, lean)

    return specification


adam, adamw = steps_of(torch.optim.Adam), steps_of(torch.optim.AdamW, weight_decay=0.5)

# ---- bytes by formula

OPTIMIZERS, PRECISIONS = ("sgd", "momentum", "adam"), ("fp32", "mixed", "mixed, fp32 gradients")
RECOMPUTATION = ("none", "selective", "full")


def numbers_of(layers, hidden, vocab, positions, tied=True):
    return transformer.gpt_params(layers, hidden, vocab, positions, tied_embeddings=tied)


def bytes_of_states(params, optimizer, precision, stage, n):
    each = formulas.bytes_per_param(optimizer, precision != "fp32", precision == "mixed, fp32 gradients")
    return formulas.model_state_parts(params, stage, n, each)


def bytes_kept(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    sizes = {"bytes_per_element": element, "mask_bytes": mask, "recomputation": recomputation}
    return formulas.activation_bytes(batch * sequence, sequence, hidden, heads, layers, **sizes)


def bytes_of_a_layer(batch, sequence, hidden, heads, element=2, mask=1):
    return bytes_kept(1, batch, sequence, hidden, heads, "none", element, mask)


def a_shape(draw):
    """A batch, a sequence, and a width with heads that divide it."""
    heads = draw.randint(1, 16)
    return draw.randint(2, 5), draw.randint(2, 4096), heads * draw.randint(1, 64), heads


@on_paper(counts(numbers_of))
def parameters():
    draw = yield {
        "GPT-2": [(12, 768, 50257, 1024)],
        "the model measured above, and one layer": [(4, 64, 101, 48), (1, 6, 7, 5)],
        "a head of its own": [(3, 10, 31, 9, False)],
    }
    shapes = [[draw.randint(1, most) for most in (96, 12288, 99999, 4096)] for _ in range(4)]
    yield {"other models": shapes, "each with a head of its own": [(*shape, False) for shape in shapes]}


@on_paper(gives(("parameters", "gradients", "optimizer"), bytes_of_states))
def states():
    draw = yield {
        "Adam in mixed precision": [(1000, "adam", "mixed", 0, 1)],
        "each optimizer, in fp32 and in mixed precision": [
            (1000, *kind, 0, 1) for kind in product(OPTIMIZERS, PRECISIONS[:2])
        ],
        "7.5 billion parameters on 64 ranks at stage 2": [(7_500_000_000, "adam", "mixed", 2, 64)],
        "every stage on 3 ranks, where 3 does not divide": [(1001, "momentum", PRECISIONS[2], i, 3) for i in range(4)],
    }
    every = product(OPTIMIZERS, PRECISIONS, range(4))
    others = [(draw.randrange(10**10), *kind, draw.randint(2, 64)) for kind in every]
    yield {"every optimizer in every precision at every stage": others}


@on_paper(gives("the memory of a layer in bytes", bytes_of_a_layer))
def activations():
    draw = yield {
        "a layer of GPT-3, one sequence": [(1, 2048, 12288, 96)],
        "a small layer on a CPU in fp32": [(2, 48, 64, 4, 4, 4)],
        "three sequences, 1-byte masks in fp32": [(3, 7, 10, 5, 4, 1)],
    }
    sizes = (2, 1), (4, 1), (2, 2), (4, 4), (8, 1)
    yield {"other shapes, and bytes of an element and a mask": [(*a_shape(draw), *each) for each in sizes]}


@on_paper(gives("the memory kept in bytes", bytes_kept))
def kept():
    draw = yield {
        "GPT-3, one sequence, nothing recomputed": [(96, 1, 2048, 12288, 96, "none")],
        "selective, and full": [(96, 1, 2048, 12288, 96, kind) for kind in RECOMPUTATION[1:]],
        "three sequences in fp32, each way": [(2, 3, 20, 16, 8, kind, 4, 1) for kind in RECOMPUTATION],
    }
    every = product(RECOMPUTATION, ((2, 1), (4, 4), (4, 1), (2, 2)))
    others = [(draw.randint(1, 96), *a_shape(draw), kind, *sizes) for kind, sizes in every]
    yield {"other layers, elements and masks": others}


def needs(batch, layers, hidden, heads, vocab, sequence, stage, n, recomputation):
    """Bytes of a training step on one rank."""
    states = formulas.model_state_bytes(transformer.gpt_params(layers, hidden, vocab, sequence), stage, n)
    end = formulas.output_activation_bytes(batch * sequence, hidden, vocab)
    return states + bytes_kept(layers, batch, sequence, hidden, heads, recomputation) + end


def is_the_largest_that_fits(run):
    memory, *plan = run.case.args
    batch = plain_number(run.returned[0])
    if not is_whole_number(batch, least=0):
        return f"returned {batch!r}, not a whole number from 0"
    if batch and needs(batch, *plan) > memory:
        return f"a batch of {batch} needs {needs(batch, *plan):.6g} bytes and does not fit"
    more = needs(batch + 1, *plan)
    return None if more > memory else f"a batch of {batch + 1} needs {more:.6g} bytes and would fit"


@on_paper(is_the_largest_that_fits)
def largest_batch():
    def room(batch, plan):
        """For so many sequences, for one byte less, and for one more."""
        return [(int(needs(batch, *plan)) + more, *plan) for more in (-1, 0, 1)]

    xl = 48, 1600, 25, 50257, 1024
    draw = yield {
        "GPT-2 XL in 80 GB": [(80_000_000_000, *xl, 0, 1, "none")],
        "with full recomputation": [(80_000_000_000, *xl, 0, 1, "full")],
        "at stage 3 on 64 ranks, selective": [(80_000_000_000, *xl, 3, 64, "selective")],
        "room for 3 sequences, a byte less or more": room(3, (3, 24, 2, 40, 6, 2, 4, "none")),
        "in 16 GB the states alone do not fit": [(16_000_000_000, *xl, 0, 1, "none")],
    }

    def plans(ranks):
        for stage, kind in product(range(4), RECOMPUTATION):
            heads = draw.randint(1, 4)
            model = draw.randint(1, 4), heads * draw.randint(2, 9), heads, draw.randint(20, 80), draw.randint(4, 12)
            yield *model, stage, draw.choice(ranks), kind

    # A share of the states is exact on 2, 4 or 8 ranks; on others, rounding may decide over the last byte.
    yield {
        "to the byte, at every stage": [case for plan in plans((2, 4, 8)) for case in room(draw.randint(2, 9), plan)],
        "on 3, 5 or 7 ranks": [(int((needs(5, *plan) + needs(6, *plan)) / 2), *plan) for plan in plans((3, 5, 7))],
    }


# ---- recomputation


def with_and_without(checkpointed, block, *, recomputation, **case):
    """A chain of blocks measured without recomputation, "plain", and with the student's, "yours"."""
    with unaided("torch.utils.checkpoint"):
        plain, yours = (_measured(block, checkpointed, way, **case) for way in ("none", recomputation))
    return {"plain": plain, "yours": yours}


def _measured(block, checkpointed, recomputation, layers, batch, sequence, hidden, heads, dropout=0.0, calls=1):
    """The chain is called ``calls`` times. Then each call has its backward pass, the first one's first."""
    torch.set_num_threads(1)
    torch.manual_seed(layers)
    runs = []

    @cache  # one for all calls of a layer, as the layer is one
    def counted(function):
        return lambda *inputs: runs.append(function) or function(*inputs)

    def checkpoint(function, *inputs):
        return must_be_a_tensor("checkpointed", checkpointed(counted(function), *inputs))

    options = {"dropout": dropout, "recomputation": recomputation, "checkpoint": checkpoint}
    blocks = torch.nn.Sequential(*[block(hidden, heads, **options) for _ in range(layers)])
    inputs = [torch.randn(batch, sequence, hidden, requires_grad=True) for _ in range(calls)]
    with MemoryTimeline(blocks) as memory:
        outputs = [blocks(x) for x in inputs]
        memory.mark("forward")
    held, values = memory.at("forward"), torch.cat([y.detach() for y in outputs])
    try:
        for y in outputs:
            y.sin().sum().backward()
    except RuntimeError as error:
        if "a second time" not in str(error):
            raise
        why = "the second run is still part of the graph of the first: take every input out of it with detach()"
        raise RuntimeError(why) from error

    def gradients_of(tensors):
        return torch.cat([(torch.zeros_like(x) if x.grad is None else x.grad).flatten() for x in tensors])

    return {
        "output": values,
        "gradient of the input": gradients_of(inputs),
        "gradient of the parameters": gradients_of(blocks.parameters()),
        "next random number": torch.rand(1),
        "held": held.total - held["parameters"] - values.nbytes,
        "runs": len(runs),
        "mask": 1 if values.is_cuda else 4,  # bytes of an element of a dropout mask
    }


HINTS = {  # where there is nothing
    "gradient of the input": "; backward returns one gradient for each argument of forward",
    "gradient of the parameters": "; torch.autograd.backward(output, gradient) gives them theirs",
}


def computes_again(run):
    """Each function runs twice, and all that comes of it is what comes of it without."""
    plain, yours, calls = run.reports[0].plain, run.reports[0].yours, run.option("layers") * run.option("calls", 1)
    if yours["runs"] != 2 * calls:
        return f"in {calls} call{'s' * (calls > 1)} the function ran {yours['runs']} times, expected twice in each"
    for name in ("output", *HINTS, "next random number"):
        if why := far_off(f"the {name}", yours[name], plain[name], 1e-5):
            return why + ("" if yours[name].any() else HINTS.get(name, ""))
    return None


def holds_what_is_predicted(run):
    """Beside the inputs little is held after the forward pass."""
    case = {key: value for key, value in run.case.options.items() if key not in ("dropout", "calls")}
    plain, yours, calls = run.reports[0].plain, run.reports[0].yours, run.option("calls", 1)
    predicted = calls * bytes_kept(**case, element=4, mask=yours["mask"])
    if yours["held"] <= 1.02 * predicted + 6_000 * calls * run.option("layers"):  # a generator's state has 5,056 bytes
        return None
    without = f"without recomputation {plain['held']:,}"
    return f"{yours['held']:,} bytes are held after the forward pass, expected {predicted:,.0f}; {without}"


@of(harness=with_and_without, uses=("Block",), built_from=(), ranks=1)
def recomputation(check):
    def run(layers, batch, sequence, hidden, heads, kind="full", **case):
        shape = {"layers": layers, "batch": batch, "sequence": sequence, "hidden": hidden, "heads": heads}
        return check.run(recomputation=kind, **shape, **case)

    chain, lean = run(3, 2, 48, 64, 4), all_of(computes_again, holds_what_is_predicted)
    check.that("the function runs twice, with the same output and gradients", chain, computes_again)
    check.that("nothing is kept but the inputs", chain, lean)
    dropped = run(2, 2, 48, 64, 4, dropout=0.2)
    check.that("with dropout: the second run draws the numbers of the first", dropped, computes_again)
    of_three = [run(2, 1, 24, 32, 2, "selective", dropout=p) for p in (0.0, 0.1)]
    check.that("a function of three inputs, without dropout and with", of_three, computes_again)
    twice = run(2, 2, 24, 32, 2, calls=2)
    check.that("two calls, then both backward passes: each finds what its own call kept", twice, computes_again)
    draw = yield

    def other(kind, **case):
        heads = draw.randint(2, 4)
        shape = draw.randint(1, 4), draw.randint(1, 3), 8 * draw.randint(4, 8), 8 * heads * draw.randint(1, 2), heads
        return run(*shape, kind, **case)

    several = [other(kind, dropout=p) for kind in ("full", "selective") for p in (0.0, draw.choice((0.1, 0.3)))]
    check.that("other blocks, with and without dropout, as lean", several, lean, weight=2)
    check.that("two calls with dropout", other("full", dropout=0.1, calls=2), lean)
