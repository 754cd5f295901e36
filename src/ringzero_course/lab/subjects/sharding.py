"""Lab 06, ZeRO: what each function must be, what calls it on the ranks, and what that comes to in one process.

A vector of parameters has ``shapes``, a network of linear layers the widths ``hidden``. Where several layers have one
size, bytes can be counted in layers. ``stages`` has the second half of the lab.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ringzero.collectives import ALGORITHMS
from ringzero.collectives.run import forget_scratch
from ringzero.costs.page import memory
from ringzero.record.memory import MemoryTimeline
from ringzero_course.lab.claims.answers import gives
from ringzero_course.lab.claims.collectives import all_of, given
from ringzero_course.lab.claims.oracle import Values, holds_at_most, is_right
from ringzero_course.lab.claims.traffic import sends_at_most
from ringzero_course.lab.harness import training
from ringzero_course.lab.harness.training import end_to_end, numbers
from ringzero_course.lab.runs import LIBRARY, Claim, Run, part
from ringzero_course.lab.specification import of, other_ranks
from ringzero_course.lab.subjects.plain import on_paper

HIDDEN = (33,) * 9  # ten layers, eight of one size
BESIDES = 1_000  # bytes that may be kept beside what is asked for: sizes, shapes, step counts


def four_numbers(stage: int, params: int, n: int) -> tuple[float, ...]:
    sent = 4 * memory.communication_elements(params, stage, n)
    return *memory.model_state_parts(params, stage, n, each=(4, 4, 8)), sent


@on_paper(gives(("parameters", "gradients", "states", "what is sent"), four_numbers))
def plan():
    stages = ("plain data parallelism", "states sharded", "gradients too", "parameters too")
    draw = yield {f"stage {i}, {what}: a million on 4 ranks": [(i, 1_000_000, 4)] for i, what in enumerate(stages)}
    ranks = (1, 2, 3, draw.randrange(4, 200))
    large = [(stage, draw.randrange(10**8, 10**10), n) for stage in range(4) for n in ranks]
    uneven = [(stage, n * draw.randrange(100, 300) + 1, n) for stage in range(4) for n in (3, 5)]
    yield {"billions of parameters, from 1 rank to many": large, "where N does not divide the parameters": uneven}


# ---- a vector of parameters, and what is sent of it


def values_of(shapes: tuple, seed: int) -> list[torch.Tensor]:
    return [numbers(shape, seed + i) for i, shape in enumerate(shapes)]


def parameters_of(shapes: tuple, seed: int) -> torch.nn.ParameterList:
    here = torch.get_default_device()
    return torch.nn.ParameterList(torch.nn.Parameter(value.to(here)) for value in values_of(shapes, seed))


def vector_of(run: Run) -> torch.Tensor:
    return end_to_end(values_of(run.option("shapes"), run.option("seed")))


def sizes_of(run: Run) -> list[int]:
    """How many elements each layer of the run's model has, or its only vector."""
    if "shapes" in run.case.options:
        return [vector_of(run).numel()]
    layers = training.Model(0, run.option("hidden", HIDDEN), run.option("double", ())).layers
    return [sum(p.numel() for p in layer.parameters()) for layer in layers]


def sends(first: Claim, collectives: Callable[[int], tuple[int, int]]) -> Claim:
    """A claim: where ``first`` holds, a step sends no more of each layer than so many of the ring's ``collectives``.

    They are the numbers of reduce-scatters and all-gathers, for a number of backward passes. A few bytes more are
    right: with N parts that differ by an element, another way may send an element more in each of its rounds.
    """

    def due(run):
        times = zip(("reduce_scatter", "all_gather"), collectives(run.option("passes", 1)), strict=True)
        rings = [(many, ALGORITHMS[name]["ring"](run.world_size)) for name, many in times]
        few = 4 * run.world_size
        of_layers = [sum(many * (few + ring.bytes_sent(size, 4)) for many, ring in rings) for size in sizes_of(run)]
        return run.option("steps", 1) * sum(of_layers)

    return given(first)(sends_at_most(due))


# ---- Flat


def lay_out(flat_class: Callable, shapes: tuple, seed: int) -> dict:
    """On a rank: the vector of a flat, bytes ``held``, and all that there is to see when the vector is doubled."""
    parameters = parameters_of(shapes, seed)
    with MemoryTimeline(parameters) as timeline:
        flat = flat_class(iter(parameters))
        timeline.mark("made")
    if not isinstance(flat.owned, slice):
        raise TypeError(f"owned is a {type(flat.owned).__name__}, not a slice")
    report = {"vector": [flat.whole.clone()], "held": timeline.at("made").total}
    with torch.no_grad():
        flat.whole.mul_(2)
    return report | {"views": list(flat.parameters), "owned": [flat.whole[flat.owned], flat.shard]}


def of_a_flat(run: Run, rank: int) -> Values:
    """An oracle of ``lay_out``."""
    values = enumerate(values_of(run.option("shapes"), run.option("seed")))
    mine = 2 * part(vector_of(run), run.world_size, rank)
    return {
        "vector": {"the vector": vector_of(run)},
        "views": {f"parameter {i}": 2 * value for i, value in values},
        "owned": {"whole[owned]": mine, "the shard": mine},
    }


@of(harness=lay_out, built_from=())
def flat(check):
    def held(run, rank):
        whole = 4 * vector_of(run).numel()
        hint = f"the vector has {whole:,}, the rest is there twice"
        yield "afterwards", run.reports[rank].held, whole + BESIDES, hint

    values = is_right(of_a_flat, "vector")
    views = is_right(of_a_flat, "views", hint=": what is written into the vector does not show there", tolerance=0)
    hint = "; owned is from chunk_bounds, and the shard is whole[owned], a view"
    owned = given(views)(is_right(of_a_flat, "owned", hint=hint, tolerance=0))
    two = check.run(shapes=((17, 31), (17,)), seed=1)
    many = check.run(shapes=((7,), (), (2, 3, 5), (30, 20), (4, 1)), seed=2)
    few = check.run(shapes=((), (2, 1)), seed=3)
    check.that("parameters lie end to end, with the values they had", [two, many], values, weight=2)
    check.that("they are views of the vector", [two, many], views, weight=2)
    check.that("nothing is there twice", [two, many], given(views)(holds_at_most(held)))
    check.that("each rank owns its chunk, a view too, if only an empty one", [two, many, few], owned, weight=2)
    draw = yield
    shapes = ((), (draw.randrange(1, 30),), (draw.randrange(2, 9), 5, 3), (draw.randrange(2, 9), 1))
    others = check.runs(ranks=other_ranks(draw), shapes=shapes, seed=draw.randrange(999))
    scalar = check.runs(ranks=(2, 3), shapes=((),), seed=draw.randrange(999))
    check.that("other shapes, a single number, other ranks", [*others, *scalar], all_of(values, owned))


# ---- a shard of the mean gradient


def gradients_of(shapes: tuple, seed: int, rank: int, without: tuple = ()) -> list[torch.Tensor]:
    """A rank's gradients; that of parameter ``without[rank]`` is zeros."""
    gradients = enumerate(values_of(shapes, 1000 * seed + 100 * rank))
    return [gradient * (i not in without[rank : rank + 1]) for i, gradient in gradients]


def reduce_once(mean_gradient: Callable, flat_class: Callable, **case: Any) -> dict:
    """On a rank: the ``shard`` of the mean, bytes that its memory ``held`` and those ``left`` in gradients."""
    parameters = parameters_of(case["shapes"], case["seed"])
    flat = flat_class(iter(parameters))
    for p, gradient in zip(parameters, gradients_of(rank=dist.get_rank(), **case), strict=True):
        p.grad = gradient.to(p.device) if gradient.any() else None
    before = flat.whole.clone()
    shard = mean_gradient(flat)
    if not torch.equal(flat.whole, before):
        raise ValueError("mean_gradient changed flat.whole, the parameters: gradients need a vector of their own")
    held = shard.untyped_storage().nbytes() if isinstance(shard, torch.Tensor) else 0
    return {"shard": [shard], "held": held, "left": sum(p.grad.nbytes for p in parameters if p.grad is not None)}


def mean_shard(run: Run, rank: int) -> Values:
    """An oracle of ``reduce_once``."""
    of_each = [end_to_end(gradients_of(rank=r, **run.case.options)) for r in range(run.world_size)]
    return {"shard": {"the shard": part(torch.stack(of_each).mean(0), run.world_size, rank)}}


@of(harness=reduce_once, uses=("Flat",), built_from=(LIBRARY,))
def mean_gradient(check):
    def held(run, rank):
        report = run.reports[rank]
        yield "afterwards", report.left, 0, "a parameter still has its .grad, set it to None"
        hint = "the shard keeps all of the vector; return its clone()"
        yield "in the shard's memory", report.held, report.shard[0].nbytes, hint

    right = is_right(mean_shard, "shard")
    lets_go, cheap = given(right)(holds_at_most(held)), sends(right, lambda passes: (1, 0))
    n = check.world_size
    even = check.run(shapes=((2 * n, 5), (4 * n,)), seed=1)
    uneven = check.run(shapes=((5, 7), (7,), (11,)), seed=2)
    missing = check.run(shapes=((4, 5), (30,)), seed=3, without=(1, 0))
    check.that("rank r has shard r of the mean", even, right, weight=2)
    check.that("also when N does not divide the number of elements", uneven, right, weight=2)
    check.that("no gradient counts as zeros", missing, right)
    check.that("gradients and the reduced vector are let go", [even, uneven], lets_go, weight=2)
    check.that("no more is sent than a reduce-scatter sends", [even, uneven], cheap, weight=2)
    check.on_nccl(even, right)
    draw = yield
    seed, shapes = draw.randrange(999), ((), (draw.randrange(11, 30), 7), (draw.randrange(1, 30),))
    others = check.runs(ranks=other_ranks(draw), shapes=shapes, seed=seed)
    few = check.runs(ranks=(3, draw.choice((4, 5))), shapes=((2,),), seed=seed, without=(0,))
    check.that("other shapes and numbers of ranks", others, all_of(lets_go, cheap), weight=3)
    check.that("fewer elements than ranks; a rank without any gradient", few, lets_go, weight=2)


# ---- clipping


def vectors_to_clip(sizes: tuple, seed: int, max_norm: float, zeros: bool = False) -> list[torch.Tensor]:
    return [(0 if zeros else i + 1) * numbers((size,), 100 * seed + i) for i, size in enumerate(sizes)]


def clip_once(clip: Callable, **case: Any) -> dict:
    """On a rank: its shards of some vectors, clipped, and the norm that was returned."""
    n, rank, here = dist.get_world_size(), dist.get_rank(), torch.get_default_device()
    shards = [part(vector, n, rank).clone().to(here) for vector in vectors_to_clip(**case)]
    norm = clip(list(shards), case["max_norm"])  # a list of its own: what counts is what becomes of the tensors
    norm = torch.as_tensor(norm).reshape(-1) if isinstance(norm, (float, torch.Tensor)) else norm
    return {"norm": [norm], "shards": shards}


def clipped(run: Run, rank: int) -> Values:
    """An oracle of ``clip_once``."""
    vectors = vectors_to_clip(**run.case.options)
    norm = torch.cat(vectors).norm()
    scale = min(1.0, run.option("max_norm") / (norm.item() or 1))
    shards = {f"shard {i}": scale * part(vector, run.world_size, rank) for i, vector in enumerate(vectors)}
    return {"norm": {"the norm": norm.reshape(1)}, "shards": shards}


@of(harness=clip_once, built_from=("all_reduce",))
def clip(check):
    returned, right = is_right(clipped, "norm"), is_right(clipped, "norm", "shards")

    @given(right)
    def one_number_travels(run):
        for rank, operations in enumerate(run.operations):
            sent = [op.bytes for op in operations if op.kind == "all_reduce"]
            if sum(sent) > 8 or len(sent) > 1:
                return f"rank {rank} reduced {sum(sent)} bytes in {len(sent)} messages; one number in one would do"
        return None

    large, below = (check.run(sizes=(50, 31), seed=1, max_norm=most) for most in (2.0, 1000.0))
    empty = check.run(sizes=(2, 1), seed=3, max_norm=0.1)
    zeros = check.run(sizes=(20, 9), seed=4, max_norm=1.0, zeros=True)
    check.that("returns the norm of all shards of all ranks", [large, below], returned, weight=2)
    check.that("scales all by the same number", large, right, weight=2)
    check.that("leaves what is below max_norm as it is, and zeros", [below, zeros], right)
    check.that("where some shards are empty", empty, right)
    check.that("one number travels", large, one_number_travels)
    check.on_nccl(large, returned)
    draw = yield
    sizes = tuple(draw.randrange(3, 60) for _ in range(3))
    others = check.runs(ranks=other_ranks(draw), sizes=sizes, seed=draw.randrange(999), max_norm=draw.uniform(0.5, 5))
    check.that("other vectors and numbers of ranks", others, one_number_travels, weight=3)


# ---- a vector that comes and goes


def is_there(tensor: torch.Tensor) -> bool:
    """Whether a tensor has its memory."""
    return tensor.untyped_storage().nbytes() >= tensor.nbytes


def come_and_go(sharded_class: Callable, shapes: tuple, seed: int) -> dict:
    """On a rank, twice: gathered, used, freed, gathered again and gone backward; the shards doubled, and gathered.

    Numbers are taken as lists, whose memory is not counted in what is ``held``.
    """
    parameters, x = parameters_of(shapes, seed), torch.ones(2, shapes[0][1], requires_grad=True)
    seen: list[Any] = []
    with MemoryTimeline(parameters) as timeline:
        flat = sharded_class(iter(parameters))
        if not is_there(flat.shard):
            raise RuntimeError("the shard has lost its memory: it is a view of the vector that was freed, not a copy")
        timeline.mark("when made")
        for _ in range(2):
            flat.gather()
            y = torch.nn.functional.linear(x, *parameters).sum()
            flat.free()
            flat.gather()
            used = torch.autograd.grad(y, x)[0].tolist()
            del y
            with torch.no_grad():
                flat.shard *= 2
            flat.gather()
            seen += [used, *(p.tolist() for p in parameters)]
            flat.free()
            forget_scratch()  # the ring's own
            timeline.mark("freed")
    held = {when: timeline.at(when).total for when in ("when made", "freed")}
    return {"gathered": [*map(torch.tensor, seen)], "held": held}


def doubled(run: Run, _: int) -> Values:
    """An oracle of ``come_and_go``."""
    found: dict[str, torch.Tensor] = {}
    for turn, when in enumerate(("first", "second")):
        weight, bias = (2**turn * value for value in values_of(run.option("shapes"), run.option("seed")))
        found[f"a gradient, the {when} time,"] = weight.sum(0).expand(2, -1)
        found |= {f"the weight, the {when} time,": 2 * weight, f"the bias, the {when} time,": 2 * bias}
    return {"gathered": found}


@of(harness=come_and_go, built_from=(LIBRARY,))
def sharded(check):
    def held(run, rank):
        whole = vector_of(run)
        shard = 4 * part(whole, run.world_size, rank).numel()
        for when, held in run.reports[rank].held.items():
            yield when, held, shard + BESIDES, f"the shard has {shard:,}, the whole vector {4 * whole.numel():,}"

    right = is_right(doubled, "gathered", hint=", after gather()")
    lean, cheap = given(right)(holds_at_most(held)), sends(right, lambda passes: (0, 6))
    run = check.run(shapes=((29, 30), (29,)), seed=1)
    check.that("after gather() the parameters have their values, the second time too", run, right, weight=3)
    check.that("after free() only the shard is left", run, lean, weight=2)
    check.that("a gather sends (N−1)/N of the vector", run, cheap)
    check.on_nccl(run, right)
    draw = yield
    rows, columns, seed = draw.randrange(25, 40), draw.randrange(25, 40), draw.randrange(999)
    others = check.runs(ranks=other_ranks(draw), shapes=((rows, columns), (rows,)), seed=seed)
    check.that("other shapes and numbers of ranks", others, all_of(lean, cheap), weight=3)
