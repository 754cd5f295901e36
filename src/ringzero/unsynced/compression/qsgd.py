"""QSGD: each value rounded at random to one of a few levels, so that the expectation is the value itself.

Alistarh et al., "QSGD: Communication-Efficient SGD via Gradient Quantization and Encoding" (2017). A block of values
has its largest magnitude as its norm, as in the paper's experiments: of the same bits it makes finer levels than the
2-norm of the theory. Levels take a fixed number of bits; the paper's Elias code would send zeros in fewer.
"""

import torch
import torch.distributed as dist

from ringzero.collectives.formats import all_rows, floats, in_blocks, packed, unpacked
from ringzero.unsynced.compression.compressor import Compressor, Exchange


class QSGD(Compressor):
    """Each rank sends its values in ``bits`` each, the sign included, and an fp32 norm for each ``block`` of values.

    An all-gather: see ``costs.compression.qsgd_bytes``. Two bits are TernGrad. It is unbiased, so it has no error
    feedback. A block with an infinite number or a NaN is infinite or NaN everywhere. Raises ValueError unless ``bits``
    is 2, 4 or 8, and ``block`` a whole number from 1.
    """

    def __init__(self, bits: int = 4, block: int = 256, seed: int = 0, group: dist.ProcessGroup | None = None):
        if bits not in (2, 4, 8):
            raise ValueError(f"bits is {bits!r}; take 2, 4 or 8, of which one is the sign: bytes are packed full")
        if not (isinstance(block, int) and block >= 1):
            raise ValueError(f"block is {block!r}; give a whole number of values that share a norm, at least 1")
        self.bits, self.block, self.seed = bits, block, seed
        super().__init__(error_feedback=False, group=group)

    def mean(self, values: torch.Tensor, exchange: Exchange) -> torch.Tensor:
        random = exchange.random(values.device, self.seed, exchange.group.rank())
        message, total = encode(values, self.bits, self.block, random), torch.zeros_like(values)
        for wire in all_rows(message, exchange.group):  # this rank's own too, for all ranks must get the same
            total += decode(wire, values.numel(), self.bits, self.block)
        return total / exchange.ranks


def encode(values: torch.Tensor, bits: int, block: int, random: torch.Generator) -> torch.Tensor:
    """1-D ``values`` as bytes: the norms, then sign and level of each value."""
    blocks, levels = in_blocks(values.abs(), block), 2 ** (bits - 1) - 1
    norms = blocks.amax(1).float()
    exact = (blocks * (levels / (norms + (norms == 0)))[:, None]).view(-1)[: values.numel()]
    chance = torch.rand(exact.shape, generator=random, dtype=exact.dtype, device=exact.device)
    level = (exact + chance).floor_().clamp_(max=levels)
    return torch.cat([norms.view(torch.uint8), packed(level + (levels + 1) * (values < 0), bits)])


def decode(wire: torch.Tensor, numel: int, bits: int, block: int) -> torch.Tensor:
    """The ``numel`` values in ``wire``, fp32."""
    norms_end, levels = -(-numel // block) * 4, 2 ** (bits - 1) - 1
    norms = floats(wire[:norms_end])
    numbers = unpacked(wire[norms_end:], bits)[:numel]
    signed = (numbers & levels).float() * (1.0 - 2.0 * (numbers > levels))
    return (in_blocks(signed, block) * (norms / levels)[:, None]).view(-1)[:numel]
