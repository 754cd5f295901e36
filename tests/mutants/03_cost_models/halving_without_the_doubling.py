"""The reduce-scatter only."""
# caught by: test_halving_doubling_cost
# mistake: part_missing
# %% halving_doubling_cost
def halving_doubling_cost(n):
    steps = n.bit_length() - 1
    rest = 2 if n > 2**steps else 0
    return steps + rest, (2**steps - 1) / 2**steps + rest
