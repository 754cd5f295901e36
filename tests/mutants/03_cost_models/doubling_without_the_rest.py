"""Forgets the ranks beyond a power of two."""
# caught by: test_doubling_cost
# %% doubling_cost
def doubling_cost(n):
    rounds = n.bit_length() - 1
    return rounds, float(rounds)
