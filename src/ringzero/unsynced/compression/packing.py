"""Small numbers packed into bytes."""

import torch


def packed(numbers: torch.Tensor, bits: int) -> torch.Tensor:
    """1-D whole ``numbers`` below ``2 ** bits`` as bytes, the first in the lowest bits. ``bits`` is 1, 2, 4 or 8.

    >>> packed(torch.tensor([1, 0, 0, 1, 0, 0, 0, 0, 1]), bits=1).tolist()
    [9, 1]
    """
    numbers = torch.nn.functional.pad(numbers.to(torch.uint8), (0, -numbers.numel() % (8 // bits)))
    in_bytes = numbers.view(-1, 8 // bits)
    return (in_bytes << _shifts(bits, numbers.device)).sum(1, dtype=torch.uint8)


def unpacked(wire: torch.Tensor, bits: int) -> torch.Tensor:
    """The numbers in 1-D bytes, with those that fill the last byte.

    >>> unpacked(torch.tensor([9, 1], dtype=torch.uint8), bits=4).tolist()
    [9, 0, 1, 0]
    """
    return ((wire[:, None] >> _shifts(bits, wire.device)) & (2**bits - 1)).view(-1)


def _shifts(bits: int, device: torch.device) -> torch.Tensor:
    return torch.arange(0, 8, bits, dtype=torch.uint8, device=device)
