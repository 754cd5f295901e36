"""Lets the ranks beyond a power of two send an Nth of their buffer."""
# caught by: test_halving_doubling_cost
# mistake: rest_beyond_power_of_two
# %% halving_doubling_cost
def halving_doubling_cost(n):
    steps = n.bit_length() - 1
    rest = 2 if n > 2**steps else 0
    return 2 * steps + rest, 2 * (2**steps - 1) / 2**steps + rest / n
