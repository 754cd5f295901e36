"""The ring's bytes for every N: the ranks beyond a power of two are forgotten."""
# caught by: test_halving_doubling_cost
# mistake: rest_beyond_power_of_two
# %% halving_doubling_cost
def halving_doubling_cost(n):
    return 2 * (n - 1).bit_length(), 2 * (n - 1) / n
