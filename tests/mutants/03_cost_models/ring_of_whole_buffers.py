"""The whole buffer in every round."""
# caught by: test_ring_cost
# mistake: other_algorithms_cost
# %% ring_cost
def ring_cost(n):
    return 2 * (n - 1), 2.0 * (n - 1)
