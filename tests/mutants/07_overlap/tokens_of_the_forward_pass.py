"""Hides the all-reduce behind the forward pass."""
# caught by: test_least_tokens
# mistake: part_missing
# says: (2 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return element * (n - 1) / n * flops / bandwidth
