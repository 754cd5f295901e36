"""Forgets (N-1)/N."""
# caught by: test_least_tokens
# mistake: part_missing
# says: (1.14 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return element / 2 * flops / bandwidth
