"""torch.distributed's own collectives: two that have had two names, and tensors of any layout.

A backend moves the first ``numel`` numbers from where a tensor begins in memory, whatever its strides say. gloo does
so without a word: a column of a matrix arrives as a piece of a row. ``contiguous`` is the one place that deals with it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

all_gather_single = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor  # torch's since 2.13
reduce_scatter_single = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@contextmanager
def contiguous(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """What a backend may move in place of ``tensor``, whatever its layout; at the end ``tensor`` holds the result.

        with contiguous(parameter) as numbers:
            dist.broadcast(numbers, 0)

    It is ``tensor`` itself, without autograd, where that is contiguous. Else it is a copy, which is copied back: of
    a tensor with gaps or permuted dimensions, of one whose numbers share memory (``expand``), and of a lazy conjugate
    or negative. Wait for the collective inside.

    Raises ValueError for a sparse tensor, and where numbers that share memory would have to differ.
    """
    own = tensor.detach()
    if own.layout != torch.strided:
        raise ValueError(f"a backend moves dense tensors; this one is {own.layout}. Pass tensor.to_dense()")
    if own.is_contiguous() and not is_lazy(own):
        yield own
        return
    copy = own.resolve_conj().resolve_neg().contiguous()
    yield copy
    write(own, copy)


def write(tensor: torch.Tensor, numbers: torch.Tensor) -> None:
    """Copy ``numbers`` into ``tensor``, of the same shape, whatever its layout.

    Raises ValueError where numbers that share memory in ``tensor`` differ in ``numbers``.
    """
    own, shares_memory = tensor.detach(), False
    target, source = own, numbers
    for dimension, (size, stride) in enumerate(zip(own.shape, own.stride(), strict=True)):
        if size > 1 and stride == 0:  # each place once: torch refuses to write it several times
            target, source = target.narrow(dimension, 0, 1), source.narrow(dimension, 0, 1)
            shares_memory = True
    target.copy_(source)
    if shares_memory and not torch.equal(_bits(own), _bits(numbers)):
        raise ValueError(
            f"a tensor of shape {tuple(own.shape)} with strides {own.stride()} holds one number in several places, and "
            "was to get different ones there, as another rank has them; pass tensor.clone(), with memory for each"
        )


def is_lazy(tensor: torch.Tensor) -> bool:
    """Whether its memory holds other numbers than the tensor: their conjugates, as of ``conj()``, or negatives."""
    return tensor.is_conj() or tensor.is_neg()


def _bits(tensor):
    return tensor.resolve_conj().resolve_neg().contiguous().view(-1).view(torch.uint8)
