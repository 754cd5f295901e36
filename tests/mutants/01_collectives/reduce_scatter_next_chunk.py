"""Off by one: rank r ends with chunk r + 1 of the sum."""
# caught by: test_reduce_scatter
# mistake: wrong_place
# %% reduce_scatter
def reduce_scatter(tensor):
    rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
    mine = chunks[(rank + 1) % n]
    landing = torch.empty_like(mine)
    for k in range(1, n):
        exchange(chunks[(rank + k + 1) % n], (rank + k) % n, landing, (rank - k) % n)
        mine += landing
    return mine
