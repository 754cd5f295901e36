"""What NCCL takes and what it refuses, and what ranks must agree on."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from ringzero.strict.accesses import StrictError
from ringzero.strict.pending import Tensors

OPS = {
    "SUM": torch.add,
    "AVG": torch.add,  # of floating-point numbers each is divided first, as NCCL does; whole ones are at the end
    "PRODUCT": torch.mul,
    "MAX": torch.maximum,
    "MIN": torch.minimum,
}
REFUSED = ("BAND", "BOR", "BXOR", "PREMUL_SUM")
TYPES = {
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool),
}


def said(tag: int) -> str:
    """NCCL ignores tags, so a message whose receive has another tag would still arrive there."""
    return f", tag {tag}" if tag else ""


def nothing(like: torch.Tensor) -> torch.Tensor:
    return like.new_empty(0)


def words(op: dist.ReduceOp | None, tensor: torch.Tensor, root: int | None = None) -> str:
    """What must be the same on all ranks, besides sizes."""
    of = [] if op is None else [name_of(op).lower()]
    return ", ".join([*of, str(tensor.dtype).removeprefix("torch."), *([] if root is None else [f"root {root}"])])


def name_of(op: dist.ReduceOp) -> str:
    return next(name for name in (*OPS, *REFUSED) if op == getattr(dist.ReduceOp, name))


def reducer(op: dist.ReduceOp) -> Callable[[Tensors], torch.Tensor]:
    """What makes one tensor of the ranks' tensors, in the order of ranks. Raises StrictError for what NCCL refuses."""
    name = name_of(op)
    if name in REFUSED:
        raise StrictError(f"NCCL cannot reduce with {name}: use {', '.join(OPS)}")

    def reduce(parts):
        divides_first = name == "AVG" and parts[0].is_floating_point()
        if divides_first:
            parts = [part / len(parts) for part in parts]
        total = parts[0].clone()
        for part in parts[1:]:
            OPS[name](total, part, out=total)
        return total if name != "AVG" or divides_first else total.div_(len(parts), rounding_mode="trunc")

    return reduce


def check(tensors: Tensors, kind: str, rank: int = 0, size: int = 0, peer: int | None = None) -> None:
    """Raise StrictError for what NCCL refuses, ValueError for a rank that is not there."""
    for tensor in tensors:
        if not tensor.is_contiguous():
            raise StrictError(
                f"NCCL moves contiguous tensors only, and {kind} got one of shape {tuple(tensor.shape)} with strides "
                f"{tensor.stride()}: pass tensor.contiguous()"
            )
        if tensor.is_neg():
            raise StrictError(
                f"NCCL moves memory as it is, and {kind} got a tensor whose memory holds the negatives of its numbers, "
                "as the imaginary part of conj(): pass tensor.resolve_neg()"
            )
        if tensor.dtype not in TYPES:
            raise StrictError(f"NCCL does not know {tensor.dtype}, which {kind} got: convert the tensor first")
    if peer is not None and not 0 <= peer < size:
        raise ValueError(f"{kind}: there is no rank {peer}; the group's ranks are 0 to {size - 1}")
    if peer == rank and peer is not None:
        raise StrictError(f"NCCL has no {kind} from a rank to itself: copy the tensor")
