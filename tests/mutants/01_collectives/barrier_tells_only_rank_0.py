"""Half of it: rank 0 waits for all, nobody waits for rank 0."""
# caught by: test_barrier
# mistake: part_missing
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    if rank:
        dist.send(token, dst=0)
    else:
        for other in range(1, n):
            dist.recv(token, src=other)
