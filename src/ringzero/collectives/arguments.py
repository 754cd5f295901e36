"""What collectives are called with: tensors, operations and groups that do not fit are refused, with what to do."""

from functools import cache

import torch
import torch.distributed as dist

from ringzero.collectives.run import REDUCE
from ringzero.collectives.schedule import chunk_bounds
from ringzero.collectives.torchs import is_lazy

RETURN_IT = ("all_reduce", "all_gather", "reduce", "broadcast", "gather")  # the tensor that they were given


def checked(name, tensor, op, group):
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
    if tensor.is_meta:
        raise ValueError(f"{name} takes a tensor with numbers; this one is on the meta device")
    has_graph = tensor.grad_fn is not None and torch.is_grad_enabled()
    if has_graph and name not in RETURN_IT:
        raise ValueError(_Unseen.SENTENCE.format(name))
    if is_lazy(tensor):
        raise ValueError(
            f"{name} works in place on memory, and that of this tensor holds the conjugates or the negatives of its "
            "numbers: it is a view by conj() or of its imaginary part. Pass tensor.resolve_conj().resolve_neg() and "
            "copy the result back"
        )
    if op not in REDUCE:
        raise ValueError(f"op is {op!r}; it is one of {', '.join(map(repr, REDUCE))}")
    if op == "avg" and not (tensor.is_floating_point() or tensor.is_complex()):
        raise ValueError(f'op="avg" needs a floating-point or complex tensor; this one is {tensor.dtype}. Use "sum"')
    if op in ("max", "min") and tensor.is_complex():
        raise ValueError(f"op={op!r} is not defined for {tensor.dtype}: complex numbers have no order")
    if "reduce" in name and (why_not := _why_not(op, tensor.dtype, tensor.device.type)):
        raise ValueError(
            f"op={op!r} is not computed for {tensor.dtype} on {tensor.device.type} ({why_not}); convert the tensor, "
            "such as with .float()"
        )
    flat, group = tensor.detach().view(-1), member(name, group)
    if has_graph:
        try:
            _Unseen.apply(tensor, name)
        except RuntimeError:  # a view whose graph nobody may change, such as one of unbind's
            raise ValueError(_Unseen.SENTENCE.format(name)) from None
    return flat, group


class _Unseen(torch.autograd.Function):
    """The tensor, as it is, in whose graph a backward pass now stops: a loss that was reduced may still be printed."""

    SENTENCE = (
        "{} works in place on memory, which autograd does not see, and its tensor was computed from others that "
        "require gradients: they would get gradients as if no other rank were there. Pass tensor.detach(), or take "
        "torch.distributed.nn.functional for gradients through a collective"
    )

    @staticmethod
    def forward(ctx, tensor, name):
        ctx.name = name
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError(_Unseen.SENTENCE.format(ctx.name))


@cache
def _why_not(op, dtype, device):
    """Why torch cannot reduce this type, or None. All ranks ask, so that all raise, even if only one would reduce."""
    try:
        two = torch.zeros(2, dtype=dtype, device=device)
        REDUCE[op](two, two, out=two)
        if op == "avg":
            two.mul_(0.5).div_(0.75)
    except (RuntimeError, TypeError) as error:
        return str(error).splitlines()[0].rstrip(".")
    return None


def member(name, group):
    """The group, the default one for None, of which this rank must be a member."""
    if not dist.is_initialized():
        raise RuntimeError(f"{name} needs a process group; call it inside launch(...), or init_process_group first")
    if group is dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError(f"rank {dist.get_rank()} is not in the group it passed to {name}; only members may call it")
    return group or dist.group.WORLD


def splits_of(output, input, output_sizes, input_sizes, group):
    """``(outgoing, incoming)``, elements by rank, or None without sizes. ValueError where the tensors do not fit."""
    if (output.dtype, output.device) != (input.dtype, input.device):
        raise ValueError(
            f"output is {output.dtype} on {output.device}, input {input.dtype} on {input.device}; make them alike"
        )
    ends = min(output.data_ptr() + output.nbytes, input.data_ptr() + input.nbytes)
    if max(output.data_ptr(), input.data_ptr()) < ends:
        raise ValueError("output and input of all_to_all overlap in memory; pass another tensor as output")
    world_size = group.size()
    if output_sizes is None and input_sizes is None:
        start, stop = chunk_bounds(input.numel(), world_size)[group.rank() :][:2].tolist()
        if output.numel() != world_size * (stop - start):
            raise ValueError(
                f"output has {output.numel()} elements; the chunk of {world_size} ranks' {input.numel()} elements that "
                f"goes to rank {group.rank()} has {stop - start}, so {world_size * (stop - start)} arrive"
            )
        return None
    return tuple(
        _rows(name, tensor, sizes, world_size)
        for name, tensor, sizes in (("input", input, input_sizes), ("output", output, output_sizes))
    )


def _rows(name, tensor, sizes, world_size):
    """Split sizes in rows to sizes in elements."""
    rows = len(tensor) if tensor.dim() else 1
    if sizes is None:
        sizes = [rows / world_size] * world_size if rows % world_size else [rows // world_size] * world_size
    sizes = tuple(sizes)
    if len(sizes) != world_size or sum(sizes) != rows or any(size != int(size) or size < 0 for size in sizes):
        raise ValueError(
            f"{name}_split_sizes is {list(sizes)}; give {world_size} whole numbers, one a rank, whose sum is the "
            f"{rows} rows of {name}"
        )
    row = tensor.numel() // rows if rows else 0
    return tuple(int(size) * row for size in sizes)
