"""Numbers in fewer bits: bits in bytes, and chunks that all ranks get."""

import math

import pytest
import torch
import torch.distributed as dist

from ringzero import launch
from ringzero.collectives.formats import Blocks, Float, chunks_of, encoded, packed, to_all, to_owners, unpacked


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("numel", [0, 1, 7, 8, 33])
def test_packed_numbers_come_out_as_they_went_in(numel, bits, signed):
    lowest = -(2 ** (bits - 1)) if signed else 0
    random = torch.Generator().manual_seed(numel)
    numbers = torch.randint(lowest, lowest + 2**bits, (numel,), generator=random)
    wire = packed(numbers, bits)
    assert (wire.dtype, wire.numel()) == (torch.uint8, math.ceil(numel * bits / 8))
    assert unpacked(wire.view(torch.int8) if signed else wire, bits)[:numel].tolist() == numbers.tolist()


FORMATS = {"bf16": Float(torch.bfloat16), "int8": Blocks(8, 16), "int4": Blocks(4, 16)}


def exchanged(numel):
    """By format: what each rank has sent of this rank's chunk, decoded; and all chunks as ``to_all`` has them."""
    rank, n, results = dist.get_rank(), dist.get_world_size(), {}
    for name, format in FORMATS.items():
        vector = torch.arange(numel) * 0.37 + rank
        chunks = chunks_of(vector, n)
        rows = to_owners(encoded(format, chunks), dist.group.WORLD)
        arrived = [format.decode(row, chunks[rank].numel()) for row in rows]
        to_all(format, chunks, dist.group.WORLD)
        results[name] = arrived, vector
    return results


@pytest.mark.parametrize("numel", [50, 2])
def test_owners_get_everyones_chunk_and_all_get_the_owners(numel):
    """Bit for bit what one process encodes and decodes. Of 2 numbers, one of 3 ranks has an empty chunk."""
    n = 3
    given = [chunks_of(torch.arange(numel) * 0.37 + rank, n) for rank in range(n)]
    for rank, results in enumerate(launch(exchanged, numel, world_size=n).returns):
        for name, format in FORMATS.items():
            arrived, vector = results[name]
            for sender in range(n):
                chunk = given[sender][rank]
                assert torch.equal(arrived[sender], format.decode(format.encode(chunk), chunk.numel())), name
            owners = [given[owner][owner] for owner in range(n)]
            assert torch.equal(vector, torch.cat([format.decode(format.encode(c), c.numel()) for c in owners])), name
