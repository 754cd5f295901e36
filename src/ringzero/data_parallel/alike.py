"""Have the ranks' modules be alike: what may not differ when one is wrapped, and what rank 0 has for all."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import zip_longest

import torch
import torch.distributed as dist
from torch.nn import Module

from ringzero.collectives.torchs import contiguous, write

STATISTICAL = (
    *(torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm),
    *(torch.nn.InstanceNorm1d, torch.nn.InstanceNorm2d, torch.nn.InstanceNorm3d),
)  # layers with running statistics


def check_alike(module: Module, unused: Collection[str], group: dist.ProcessGroup) -> set[str]:
    """Raise ValueError, on every rank, naming the first parameter or buffer in which a rank differs from rank 0.

    Those that are ``unused`` may differ. Returns the names of those that do.
    """
    tensors = [*module.named_parameters(), *module.named_buffers()]
    mine = {name: f"{name}: {tuple(t.shape)} {t.dtype}{' trained' * t.requires_grad}" for name, t in tensors}
    strides = {name: p.stride() for name, p in module.named_parameters() if not p.is_contiguous()}  # as gradients lie
    mine |= {name: f"{mine[name]}, strides {of_it}" for name, of_it in strides.items()}
    everyone: list[dict[str, str]] = [{}] * group.size()
    dist.all_gather_object(everyone, mine, group=group)
    for rank, theirs in enumerate(everyone):
        used = ([text for name, text in each.items() if name not in unused] for each in (everyone[0], theirs))
        for first, other in zip_longest(*used, fillvalue="nothing more"):
            if first != other:
                raise ValueError(f"the ranks' modules differ: rank 0 has {first}, rank {rank} has {other}")
    return {name for name in unused if len({theirs.get(name) for theirs in everyone}) > 1}


def refuse_without_numbers(module: Module) -> None:
    """Raise ValueError for parameters and buffers that have no numbers yet, of lazy modules and on "meta"."""
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if torch.nn.parameter.is_lazy(tensor):
            raise ValueError(
                f"{name} has no shape before the first forward pass; make one with a batch, then wrap the module"
            )
        if tensor.is_meta:
            raise ValueError(
                f"{name} is on the meta device and has no numbers; call to_empty(device=...) and load or initialise "
                "the module, then wrap it"
            )


def refuse_renormalized(module: Module) -> None:
    """Raise ValueError for embeddings that write to their weight in the forward pass, each rank to other rows."""
    for name, each in module.named_modules():
        if isinstance(each, torch.nn.Embedding | torch.nn.EmbeddingBag) and each.max_norm is not None:
            raise ValueError(
                f"{name or 'the module'} is an {type(each).__name__} with max_norm={each.max_norm}: its forward pass "
                "shortens the rows that this rank's samples use, so the ranks' weights would differ. Leave max_norm "
                "out, and shorten all rows after each step, on every rank: with torch.no_grad(): "
                f"module.get_parameter({'.'.join(filter(None, (name, 'weight')))!r}).renorm_(2, 0, {each.max_norm})"
            )


def broadcast_state(tensors: Iterable[torch.Tensor], root: int, group: dist.ProcessGroup) -> None:
    """Give every rank the ``tensors``, of any layout, of rank ``root`` of the group."""
    for tensor in tensors:
        with contiguous(tensor) as numbers:
            dist.broadcast(numbers, group_src=root, group=group)


def broadcast_changes(buffers: list[torch.Tensor], module: Module, group: dist.ProcessGroup) -> None:
    """Give every rank rank 0's ``buffers``, which are of ``module``: those of one type in one message.

    Autograd may have saved one, and must see a write to it. So only those that differ are written to. To ask whether
    they do is to wait for a GPU. Nobody asks about running statistics, which differ in each pass: autograd saves them,
    but a layer that trains computes no gradient with them, so they are written to without its seeing it.
    """
    kinds: dict[tuple, list[torch.Tensor]] = defaultdict(list)
    for buffer in buffers:
        kinds[buffer.dtype, buffer.device].append(buffer)
    unused = _running_statistics(module) if kinds and group.rank() != 0 else set()
    for alike in kinds.values():
        flat = torch.cat([buffer.detach().reshape(-1) for buffer in alike])
        dist.broadcast(flat, group_src=0, group=group)
        if group.rank() != 0:
            parts = flat.split([buffer.numel() for buffer in alike])
            _take_over({b: part.view(b.shape) for b, part in zip(alike, parts, strict=True)}, unused)


def _running_statistics(module: Module) -> set[torch.Tensor]:
    """Buffers of torch's own layers that only write to them while they train; a subclass may compute with them."""
    layers = [each for each in module.modules() if type(each) in STATISTICAL and each.training]
    return {buffer for each in layers for buffer in each.buffers(recurse=False)}


def _take_over(values: dict[torch.Tensor, torch.Tensor], unused: set[torch.Tensor]) -> None:
    asked = [buffer for buffer in values if buffer not in unused]
    flags = torch.stack([(buffer != values[buffer]).any() for buffer in asked]).tolist() if asked else []
    differ = {buffer for buffer, differs in zip(asked, flags, strict=True) if differs}
    for buffer, value in values.items():
        if buffer in unused:
            write(buffer.data, value)
        elif buffer in differ:
            write(buffer, value)
