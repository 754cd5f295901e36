"""At least one message, also on a single rank."""
# caught by: test_ring_seconds
# mistake: special_case
# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    rounds = max(1, 2 * (world_size - 1))
    return rounds * (alpha + size / world_size * beta)
