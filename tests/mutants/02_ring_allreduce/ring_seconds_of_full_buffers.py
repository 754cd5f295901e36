"""2(N-1) messages of S bytes, the form that several texts print."""
# caught by: test_ring_seconds
# mistake: other_algorithms_cost
# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    return 2 * (world_size - 1) * (alpha + size * beta)
