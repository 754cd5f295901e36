"""A single rank is taken for two."""
# caught by: test_halving_doubling_cost
# mistake: special_case
# %% halving_doubling_cost
def halving_doubling_cost(n):
    n = max(n, 2)
    steps = n.bit_length() - 1
    core = 2**steps
    rest = 2 if n > core else 0
    return 2 * steps + rest, 2 * (core - 1) / core + rest
