"""The six rounds and the one and a half buffers of 4 ranks."""
# caught by: test_ring_seconds
# mistake: some_ranks_only
# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    return 6 * alpha + 1.5 * size * beta
