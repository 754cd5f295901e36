"""Counts N-1 rounds for the reduce-scatter and one for the all-gather."""
# caught by: test_ring_seconds
# mistake: part_missing
# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    return world_size * (alpha + size / world_size * beta)
