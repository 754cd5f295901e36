"""Adds in float32: large whole numbers lose their last digits."""
# caught by: test_reduce_scatter
# mistake: type_fixed
# %% reduce_scatter
def reduce_scatter(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    total, landing = chunks[rank].float(), torch.empty_like(chunks[rank])
    for k in range(1, n):
        exchange(chunks[(rank + k) % n], (rank + k) % n, landing, (rank - k) % n)
        total += landing.float()
    chunks[rank].copy_(total)
    return chunks[rank]
