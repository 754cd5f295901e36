"""Forgets the ranks beyond a power of two."""
# caught by: test_doubling_cost
# mistake: rest_beyond_power_of_two
# %% doubling_cost
def doubling_cost(n):
    rounds = n.bit_length() - 1
    return rounds, float(rounds)
