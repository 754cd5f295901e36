"""Counts the forward pass too, in which no gradient is there."""
# caught by: test_least_tokens
# mistake: counted_twice
# says: (0.667 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return element / 3 * (n - 1) / n * flops / bandwidth
