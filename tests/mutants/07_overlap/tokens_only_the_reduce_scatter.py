"""Forgets the all-gather of a ring all-reduce."""
# caught by: test_least_tokens
# mistake: part_missing
# says: (0.5 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return element / 4 * (n - 1) / n * flops / bandwidth
