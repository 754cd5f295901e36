"""A token goes round once: the first ranks leave when the last have not come."""
# caught by: test_barrier
# mistake: part_missing
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    if n > 1:
        if rank:
            dist.recv(token, src=rank - 1)
        dist.send(token, dst=(rank + 1) % n)
        if not rank:
            dist.recv(token, src=n - 1)
