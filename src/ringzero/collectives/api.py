"""Collectives on tensors, in place, by the algorithm of your choice; the counterparts of ``torch.distributed``'s.

>>> all_reduce(gradient, "avg")                                        # doctest: +SKIP
>>> shard = reduce_scatter(flat_gradients, algorithm="bruck")          # doctest: +SKIP
>>> broadcast(weights, root=2, algorithm="double_binary_tree", chunks=16)   # doctest: +SKIP

Tensors are contiguous and of any shape; they are treated as flat buffers. A buffer shared out among N ranks has N
chunks, and chunk r is rank r's: elements ``chunk_bounds(numel, N)[r]`` to ``[r + 1]``.

``algorithm`` is a name in ``ALGORITHMS[collective]``, or "auto" for what is fastest on gloo at that size; ``**options``
are what the algorithm takes besides (``options(collective, algorithm)`` names them). ``group`` is the default group
when None, and ``root`` is a rank of the group.

All raise TypeError for what is no tensor, ValueError for a tensor, ``op``, algorithm or option that does not fit, and
for ranks whose calls do not match (see ``run.run``), and RuntimeError outside a process group.
"""

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.distributed as dist

from ringzero.collectives.algorithms import ALGORITHMS
from ringzero.collectives.arguments import checked, member, splits_of
from ringzero.collectives.auto import chosen
from ringzero.collectives.run import device_of, run
from ringzero.collectives.schedule import chunk_bounds

Group = dist.ProcessGroup | None


def all_reduce(
    tensor: torch.Tensor, op: str = "sum", *, algorithm: str = "ring", group: Group = None, **options: object
) -> torch.Tensor:
    """Replace ``tensor`` on every rank by the elementwise ``op`` over all ranks. Returns ``tensor``.

    ``op`` is "sum", "avg", "product", "max" or "min". All ranks end with the same bits, whatever the algorithm: a chunk
    is reduced on one rank and copied, or the two ends of an exchange combine the same two operands. For "avg" each rank
    scales what it brings before anything is added, so a mean that fits the type never overflows on its way.
    """
    flat, group = _in_place("all_reduce", tensor, op, algorithm, group, options)
    _end_average(flat, op, group)
    return tensor


def reduce_scatter(
    tensor: torch.Tensor, op: str = "sum", *, algorithm: str = "ring", group: Group = None, **options: object
) -> torch.Tensor:
    """Return this rank's chunk of the elementwise ``op`` over all ranks: a 1-D view into ``tensor``.

    The rest of ``tensor`` is overwritten.
    """
    flat, group = _in_place("reduce_scatter", tensor, op, algorithm, group, options)
    chunk = _chunk(flat, group)
    _end_average(chunk, op, group)
    return chunk


def all_gather(
    tensor: torch.Tensor, *, algorithm: str = "ring", group: Group = None, **options: object
) -> torch.Tensor:
    """Fill ``tensor`` on every rank with rank r's chunk r. Returns ``tensor``."""
    _in_place("all_gather", tensor, "sum", algorithm, group, options)
    return tensor


def reduce(
    tensor: torch.Tensor,
    root: int = 0,
    op: str = "sum",
    *,
    algorithm: str = "flat",
    group: Group = None,
    **options: object,
) -> torch.Tensor:
    """Replace ``tensor`` on rank ``root`` by the elementwise ``op`` over all ranks. Returns ``tensor``.

    What ``tensor`` holds on the other ranks afterwards depends on the algorithm: with "flat" what it held before, with
    the others partial results, or for "avg" what it held before.
    """
    _, group = checked("reduce", tensor, op, group)
    is_root = group.rank() == root
    brought = tensor if is_root or op != "avg" else tensor.detach().clone()  # a mean begins by scaling it
    flat, group = _in_place("reduce", brought, op, algorithm, group, options | {"root": root})
    if is_root:
        _end_average(flat, op, group)
    return tensor


def broadcast(
    tensor: torch.Tensor, root: int = 0, *, algorithm: str = "ring", group: Group = None, **options: object
) -> torch.Tensor:
    """Replace ``tensor`` on every rank by that of rank ``root``. Returns ``tensor``.

    "ring" and the binary trees take ``chunks``, the number of pieces that follow each other; by default the number that
    should be fastest (``auto.best_chunks``).
    """
    _in_place("broadcast", tensor, "sum", algorithm, group, options | {"root": root})
    return tensor


def gather(
    tensor: torch.Tensor, root: int = 0, *, algorithm: str = "flat", group: Group = None, **options: object
) -> torch.Tensor:
    """Fill ``tensor`` on rank ``root`` with rank r's chunk r. Returns ``tensor``.

    With "flat" the tensors of other ranks stay as they are. With other algorithms these ranks pass chunks on, and
    parts of their tensors are overwritten.
    """
    _in_place("gather", tensor, "sum", algorithm, group, options | {"root": root})
    return tensor


def scatter(
    tensor: torch.Tensor, root: int = 0, *, algorithm: str = "flat", group: Group = None, **options: object
) -> torch.Tensor:
    """Return chunk r of rank ``root``'s ``tensor`` on rank r: a 1-D view into its own ``tensor``, of the same size.

    With "flat" only that chunk is overwritten. With other algorithms ranks pass chunks on, and other chunks too.
    """
    flat, group = _in_place("scatter", tensor, "sum", algorithm, group, options | {"root": root})
    return _chunk(flat, group)


def all_to_all(
    output: torch.Tensor,
    input: torch.Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    *,
    algorithm: str = "pairwise",
    group: Group = None,
    **options: object,
) -> torch.Tensor:
    """Send chunk r of ``input`` to rank r, and put what rank r sends at place r of ``output``. Returns ``output``.

    Without sizes ``output`` takes N times as much as this rank's chunk of ``input``: as much as ``input`` where N
    divides it. Sizes are rows, one number a rank, as in ``torch.distributed.all_to_all_single``; only "pairwise" takes
    them, since only the two ends of a message know its size. ``output`` and ``input`` may not overlap.
    """
    sent, group = checked("all_to_all", input, "sum", group)
    received, _ = checked("all_to_all", output, "sum", group)
    splits = splits_of(output, input, output_split_sizes, input_split_sizes, group)
    if splits and algorithm not in ("pairwise", "auto"):
        raise ValueError(
            f"algorithm {algorithm!r} passes chunks on, so every rank must know every chunk's size; for "
            'input_split_sizes and output_split_sizes take algorithm="pairwise"'
        )
    schedule = _schedule("all_to_all", "pairwise" if splits else algorithm, group, sent, options)
    run(schedule, sent, "sum", group, output=received, splits=splits)
    return output


def barrier(*, algorithm: str = "dissemination", group: Group = None, **options: object) -> None:
    """Return when every rank of the group has called ``barrier``."""
    group = member("barrier", group)
    token = torch.zeros(1, dtype=torch.uint8, device=device_of(group))
    run(_schedule("barrier", algorithm, group, token, options), token, "max", group)
    if token.is_cuda:
        torch.cuda.current_stream().synchronize()


def _in_place(collective, tensor, op, algorithm, group, options):
    """Run the collective. Returns the tensor as one flat view, and the group."""
    flat, group = checked(collective, tensor, op, group)
    schedule = _schedule(collective, algorithm, group, flat, options)
    if op != "avg":
        run(schedule, flat, op, group)
        return flat, group
    scale = _scale(group)
    flat.mul_(scale)
    try:
        run(schedule, flat, op, group)
    except ValueError:  # the ranks' calls do not match, and no data has arrived
        flat.mul_(1 / scale)
        raise
    return flat, group


def _schedule(collective, algorithm, group, flat, options):
    if isinstance(options.get("shape"), list):  # to be a key of the cache
        options = options | {"shape": tuple(options["shape"])}
    size = flat.numel() * flat.element_size()
    return _made(collective, algorithm, group.size(), size, **options)


@lru_cache(maxsize=1024)
def _made(collective, algorithm, world_size, size, **options):
    name, options = chosen(collective, algorithm, world_size, size, **options)
    return ALGORITHMS[collective][name](world_size, **options)


def _chunk(flat, group):
    start, stop = chunk_bounds(flat.numel(), group.size())[group.rank() :][:2].tolist()
    return flat[start:stop]


def _scale(group):
    """The factor of each rank's numbers before a mean is added up: the largest power of two that is 1/N at most.

    A power of two rounds nothing but the smallest numbers of a type. Dividing by N here, as NCCL does, would round once
    more on every rank.
    """
    return 0.5 ** (group.size() - 1).bit_length()


def _end_average(tensor, op, group):
    rest = group.size() * _scale(group)
    if op == "avg" and rest != 1:
        tensor.div_(rest)
