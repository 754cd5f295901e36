"""One vector of parameters that is cut into shards: laid out, reduced, clipped, freed and gathered again."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ringzero.collectives.run import forget_scratch
from ringzero.lab.harness import found, returned
from ringzero.lab.harness.kept import Kept
from ringzero.lab.harness.sharded import must_have_memory, numbers, plainly
from ringzero.lab.runs import part

SHAPES = {
    "weight": (7, 5), "bias": (7,), "scalar": (), "column": (4, 1), "cube": (2, 3, 5), "row": (1, 6), "one": (1,),
    "table": (30, 20),
}  # fmt: skip
SQUARE = {"weight": (29, 30), "bias": (29,)}  # of ``come_and_go``


def values_of(names: tuple, seed: int) -> dict:
    """``{name: tensor}`` of parameters of ``SHAPES``, on the CPU."""
    return {name: numbers(SHAPES[name], seed + i) for i, name in enumerate(names)}


def lay_out(flat_class: Callable, names: tuple, seed: int) -> dict:
    """What there is to see of a flat, and then of one into whose vector 0, 1, 2, … was written."""
    parameters = _parameters(values_of(names, seed))
    flat = flat_class(iter(parameters.values()))
    if not isinstance(flat.owned, slice):
        raise TypeError(f"owned is {returned.in_short(flat.owned)}, not a slice")
    report = {
        "first": {name: p.detach().clone() for name, p in parameters.items()},
        "whole": flat.whole.clone(),
        "owned": [flat.owned.start, flat.owned.stop],
        "same": [id(p) for p in flat.parameters] == [id(p) for p in parameters.values()],
        "trained": all(p.requires_grad for p in parameters.values()),
        "bytes": _bytes_of((*parameters.values(), flat.whole, flat.shard)),
        "besides": _besides(flat, parameters.values()),
    }
    flat.whole.copy_(torch.arange(flat.whole.numel()))
    return report | {"then": {name: p.detach().clone() for name, p in parameters.items()}, "shard": flat.shard.clone()}


def gradient(size: int, seed: int, rank: int, i: int) -> torch.Tensor:
    """The gradient that ``rank`` has of parameter i, as a vector."""
    return numbers((size,), 1000 * seed + 100 * rank + i)


def _shape(size):
    """Of a parameter of so many elements: where it can be, a matrix."""
    return (size,) if size % 2 else (2, size // 2)


def reduce_once(mean_gradient: Callable, flat_class: Callable, sizes: tuple, seed: int, without: tuple = ()) -> dict:
    """One flat of parameters of these sizes; ``without[rank]`` is a parameter that gets no gradient there."""
    here, rank = torch.get_default_device(), dist.get_rank()
    parameters = [torch.nn.Parameter(numbers((size,), i).view(_shape(size)).to(here)) for i, size in enumerate(sizes)]
    flat = flat_class(parameters)
    for i, p in enumerate(parameters):
        p.grad = None if i in without[rank : rank + 1] else gradient(sizes[i], seed, rank, i).view(p.shape).to(here)
    there, before = [flat.whole, *parameters], found.uncounted(flat, mean_gradient)
    with Kept() as kept:
        for x in there:
            x.detach()  # counts what is used here, whoever made it
        shard = returned.must_be_a_tensor("mean_gradient", mean_gradient(flat))
        forget_scratch()  # the ring's own
    return {
        "elsewhere": kept.tensors - shard.untyped_storage().nbytes() - _bytes_of(there),  # what it made and keeps
        "shard": returned.tensor("mean_gradient", shard),
        "uncounted": found.uncounted(flat, mean_gradient) - before,
        "bytes": shard.untyped_storage().nbytes(),
        "left": [i for i, p in enumerate(parameters) if p.grad is not None],
        "changed": [i for i, p in enumerate(parameters) if not torch.equal(p.cpu().flatten(), numbers((sizes[i],), i))],
    }


def vectors_to_clip(sizes: tuple, seed: int, zeros: bool = False, **_: Any) -> list[torch.Tensor]:
    return [(0 if zeros else i + 1) * numbers((size,), 100 * seed + i) for i, size in enumerate(sizes)]


def clip_once(clip: Callable, sizes: tuple, seed: int, max_norm: float, zeros: bool = False) -> dict:
    """This rank's shards of some vectors, or of zeros, clipped, and the norm that was returned."""
    here, n, rank = torch.get_default_device(), dist.get_world_size(), dist.get_rank()
    shards = [part(vector, n, rank).clone().to(here) for vector in vectors_to_clip(sizes, seed, zeros)]
    norm = clip(list(shards), max_norm)  # a list of its own: what counts is what becomes of the tensors
    return {"norm": torch.as_tensor(norm).reshape(-1), "shards": shards}


def come_and_go(sharded_class: Callable, seed: int, times: int = 1) -> dict:
    """Shards of ``weight`` and ``bias``; gathered, used, freed, gathered again and gone backward, doubled, gathered."""
    here = torch.get_default_device()
    parameters = _parameters({name: numbers(shape, seed + i) for i, (name, shape) in enumerate(SQUARE.items())})
    flat, held = sharded_class(parameters.values()), list[int]()
    besides = 0  # bytes, at most, in other things than shard and whole vector
    must_have_memory(flat.shard)

    def note():
        nonlocal besides
        held.append(_bytes_of((*parameters.values(), flat.whole, flat.shard)))
        besides = max(besides, _besides(flat, parameters.values()))

    note()
    own_is_there = True  # after gather(), in the whole vector
    for turn in range(times):
        flat.gather()
        note()
        own_is_there = own_is_there and _own_is_there(flat)
        x = numbers((4, 30), seed).to(here).requires_grad_()
        y = torch.nn.functional.linear(x, **parameters)
        flat.free()
        note()
        flat.gather()
        with plainly("backward"):
            (x_gradient,) = torch.autograd.grad(y.sum(), x)
        flat.shard *= 2
        if turn % 2:
            flat.free()
        flat.gather()
        values = {name: p.detach().clone() for name, p in parameters.items()}
        flat.free()
        note()
    report = {"values": values, "y": y.detach(), "x": x_gradient, "own_is_there": own_is_there}
    return report | {"held": held, "besides": besides}


def _own_is_there(flat):
    own = part(flat.whole, dist.get_world_size(), dist.get_rank())
    return flat.whole.untyped_storage().nbytes() >= flat.whole.nbytes and torch.equal(own, flat.shard)


def _parameters(values):
    return {name: torch.nn.Parameter(value.to(torch.get_default_device())) for name, value in values.items()}


def _besides(flat, parameters):
    """Bytes in what a flat leads to beside its parameters, vector and shard."""
    known = {tensor.untyped_storage().data_ptr() for tensor in (*parameters, flat.whole, flat.shard)}
    others = [tensor for tensor in found.tensors(flat) if tensor.untyped_storage().data_ptr() not in known]
    return _bytes_of(others) + found.uncounted(flat)


def _bytes_of(tensors):
    """Bytes of the storages behind the tensors, each counted once."""
    storages = [tensor.untyped_storage() for tensor in tensors]
    return sum({storage.data_ptr(): storage.nbytes() for storage in storages}.values())
