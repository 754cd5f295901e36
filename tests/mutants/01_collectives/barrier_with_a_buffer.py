"""Right, but its token is a buffer of 64 KiB."""
# caught by: test_barrier
# mistake: too_much_sent
# %% barrier
def barrier():
    rank, n = dist.get_rank(), dist.get_world_size()
    token, landing = torch.zeros(2**14), torch.empty(2**14)
    for k in range((n - 1).bit_length()):
        exchange(token, (rank + 2**k) % n, landing, (rank - 2**k) % n)
