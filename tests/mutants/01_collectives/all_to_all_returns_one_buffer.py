"""Keeps the memory of its result for the next call of that size, which overwrites what the caller still has."""
# caught by: test_all_to_all
# mistake: copy_or_view
# %% all_to_all
results = {}


def all_to_all(tensor):
    """Return everyone's chunk ``rank`` in one new tensor, rank 0's first."""
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    size = chunks[rank].numel()
    whole = results.setdefault((n * size, tensor.dtype), tensor.new_empty(n * size))
    arrived = [whole[r * size : (r + 1) * size] for r in range(n)]
    arrived[rank].copy_(chunks[rank])
    for k in range(1, n):
        dst, src = (rank + k) % n, (rank - k) % n
        exchange(chunks[dst], dst, arrived[src], src)
    return whole
