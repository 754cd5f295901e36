"""Calls torch's all_gather where the ring was to be written, for equal chunks and others."""
# caught by: test_ring_all_gather
# mistake: ready_made
# %% ring_all_gather
def ring_all_gather(tensor):
    rank, n = dist.get_rank(), dist.get_world_size()
    bounds = chunk_bounds(tensor.numel(), n).tolist()
    longest = max(stop - start for start, stop in zip(bounds, bounds[1:]))
    mine = torch.zeros(longest, dtype=tensor.dtype, device=tensor.device)
    mine[: bounds[rank + 1] - bounds[rank]] = tensor[bounds[rank] : bounds[rank + 1]]
    pieces = [torch.empty_like(mine) for _ in range(n)]
    dist.all_gather(pieces, mine)
    for piece, start, stop in zip(pieces, bounds, bounds[1:]):
        tensor[start:stop] = piece[: stop - start]
