"""The butterfly's rounds with the ring's bytes: no algorithm does that in log2 N rounds."""
# caught by: test_doubling_cost
# mistake: other_algorithms_cost
# %% doubling_cost
def doubling_cost(n):
    rounds = n.bit_length() - 1 + (2 if n & (n - 1) else 0)
    return rounds, 2 * (n - 1) / n
