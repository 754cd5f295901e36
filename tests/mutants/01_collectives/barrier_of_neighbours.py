"""One round: each rank waits for its left neighbour only."""
# caught by: test_barrier
# mistake: part_missing
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    if n > 1:
        exchange(torch.zeros(1), (rank + 1) % n, torch.empty(1), (rank - 1) % n)
