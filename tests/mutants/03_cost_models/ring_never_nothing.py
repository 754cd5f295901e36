"""At least one round, also on a single rank."""
# caught by: test_ring_cost
# mistake: special_case
# %% ring_cost
def ring_cost(n):
    rounds = max(1, 2 * (n - 1))
    return rounds, rounds / n
