"""Collectives on tensors, in place, by the algorithm of your choice; the counterparts of ``torch.distributed``'s.

>>> all_reduce(gradient, "avg")                       # doctest: +SKIP
>>> shard = reduce_scatter(flat_gradients)            # doctest: +SKIP
"""

from functools import lru_cache

import torch
import torch.distributed as dist

from ringzero.collectives import flat, ring
from ringzero.collectives.run import REDUCE, run
from ringzero.collectives.schedule import chunk_bounds

ALGORITHMS = {
    "all_reduce": {"ring": ring.ring_all_reduce, "flat": flat.flat_all_reduce},
    "reduce_scatter": {"ring": ring.ring_reduce_scatter},
    "all_gather": {"ring": ring.ring_all_gather},
    "reduce": {"flat": flat.flat_reduce},
    "broadcast": {"ring": ring.ring_broadcast, "flat": flat.flat_broadcast},
}


def all_reduce(tensor, op="sum", *, algorithm="ring", group=None):
    """Replace ``tensor`` on every rank by the elementwise ``op`` over all ranks. Returns ``tensor``.

    ``op`` is "sum", "avg", "product", "max" or "min". All ranks end with the same bits: a chunk is reduced once
    and copied.
    """
    flat_tensor, group = _check("all_reduce", tensor, op, group)
    run(_schedule("all_reduce", algorithm, group.size()), flat_tensor, op, group)
    return _average(tensor, op, group)


def reduce_scatter(tensor, op="sum", *, algorithm="ring", group=None):
    """Return this rank's chunk of the elementwise ``op`` over all ranks: a 1-D view into ``tensor``.

    Chunk r of N holds elements ``chunk_bounds(numel, N)[r]`` to ``[r + 1]``. The rest of ``tensor`` is overwritten.
    """
    flat_tensor, group = _check("reduce_scatter", tensor, op, group)
    run(_schedule("reduce_scatter", algorithm, group.size()), flat_tensor, op, group)
    start, stop = chunk_bounds(tensor.numel(), group.size())[group.rank() :][:2].tolist()
    return _average(flat_tensor[start:stop], op, group)


def all_gather(tensor, *, algorithm="ring", group=None):
    """Fill ``tensor`` on every rank with rank r's chunk r (see ``reduce_scatter``). Returns ``tensor``."""
    flat_tensor, group = _check("all_gather", tensor, "sum", group)
    run(_schedule("all_gather", algorithm, group.size()), flat_tensor, "sum", group)
    return tensor


def reduce(tensor, root=0, op="sum", *, algorithm="flat", group=None):
    """Replace ``tensor`` on rank ``root`` of the group by the ``op`` over all ranks; others keep theirs.

    Returns ``tensor``.
    """
    flat_tensor, group = _check("reduce", tensor, op, group)
    run(_schedule("reduce", algorithm, group.size(), root=root), flat_tensor, op, group)
    return _average(tensor, op, group) if group.rank() == root else tensor


def broadcast(tensor, root=0, *, algorithm="ring", chunks=None, group=None):
    """Replace ``tensor`` on every rank by that of rank ``root`` of the group. Returns ``tensor``.

    ``chunks`` is how many pieces follow each other round the ring; by default pieces of about 256 KiB.
    """
    flat_tensor, group = _check("broadcast", tensor, "sum", group)
    options = {"root": root}
    if algorithm == "ring":
        size = tensor.numel() * tensor.element_size()
        options["chunks"] = chunks or max(1, min(64, size // 2**18))
    elif chunks is not None:
        raise ValueError(f'chunks={chunks} is for algorithm="ring"; {algorithm!r} sends the buffer whole')
    run(_schedule("broadcast", algorithm, group.size(), **options), flat_tensor, "sum", group)
    return tensor


@lru_cache(maxsize=256)
def _schedule(collective, algorithm, world_size, **options):
    choices = ALGORITHMS[collective]
    if algorithm not in choices:
        raise ValueError(f"algorithm is {algorithm!r}; {collective} has {', '.join(map(repr, choices))}")
    return choices[algorithm](world_size, **options)


def _check(name, tensor, op, group):
    """The tensor as one flat view and the group, or an error that says what to do."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name} takes a torch.Tensor, not a {type(tensor).__name__}")
    if tensor.layout != torch.strided:
        raise ValueError(f"{name} takes a dense tensor; this one is {tensor.layout}. Pass tensor.to_dense()")
    if not tensor.is_contiguous():
        raise ValueError(
            f"{name} works in place on contiguous memory; this tensor of shape {tuple(tensor.shape)} has strides "
            f"{tensor.stride()}. Pass tensor.contiguous() and copy the result back"
        )
    if op not in REDUCE:
        raise ValueError(f"op is {op!r}; it is one of {', '.join(map(repr, REDUCE))}")
    if op == "avg" and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f'op="avg" needs a floating-point or complex tensor; this one is {tensor.dtype}. Use "sum"')
    if op in ("max", "min") and tensor.is_complex():
        raise ValueError(f"op={op!r} is not defined for {tensor.dtype}: complex numbers have no order")
    if not dist.is_initialized():
        raise RuntimeError(f"{name} needs a process group; call it inside launch(...), or init_process_group first")
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError(f"rank {dist.get_rank()} is not in the group it passed to {name}; only members may call it")
    group = group or dist.group.WORLD
    return tensor.detach().view(-1), group


def _average(tensor, op, group):
    if op == "avg":
        tensor.detach().div_(group.size())
    return tensor
