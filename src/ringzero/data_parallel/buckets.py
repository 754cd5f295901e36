"""Buckets: which gradients travel together. Li et al., "PyTorch Distributed", VLDB 13 (2020)."""

from collections.abc import Iterable

from torch.nn import Parameter


def assign(parameters: Iterable[Parameter], bucket_cap_mb: float, first_bucket_mb: float = 1) -> list[list[Parameter]]:
    """Cut ``parameters`` into buckets as torch's DDP does: lists in the same order, each of one type and device.

    A bucket closes once it holds ``bucket_cap_mb`` MiB, the first of each type once it holds ``first_bucket_mb``.
    """
    closed: list[tuple[int, list[Parameter]]] = []
    filling: dict[tuple, tuple[int, list[Parameter]]] = {}
    filled: dict[tuple, int] = {}  # bytes in the bucket that is filling
    caps: dict[tuple, float] = {}
    for order, parameter in enumerate(parameters):
        kind = (parameter.dtype, parameter.device)
        filling.setdefault(kind, (order, []))[1].append(parameter)
        filled[kind] = filled.get(kind, 0) + parameter.nbytes
        if filled[kind] >= caps.get(kind, min(first_bucket_mb, bucket_cap_mb)) * 2**20:
            closed.append(filling.pop(kind))
            caps[kind], filled[kind] = bucket_cap_mb, 0
    return [members for _, members in sorted([*closed, *filling.values()], key=lambda bucket: bucket[0])]
