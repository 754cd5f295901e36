"""The all-gather in a single round, as one source has it."""
# caught by: test_ring_cost
# mistake: part_missing
# %% ring_cost
def ring_cost(n):
    return (n - 1) + 1, 2 * (n - 1) / n
