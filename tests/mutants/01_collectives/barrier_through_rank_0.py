"""To rank 0 and back: right, with N-1 messages into one rank and out of it."""
# caught by: test_barrier
# mistake: other_algorithm
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token = torch.zeros(1)
    reduce(token, 0)
    broadcast(token, 0)
