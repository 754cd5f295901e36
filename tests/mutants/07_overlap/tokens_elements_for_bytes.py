"""Sends elements and takes them for bytes."""
# caught by: test_least_tokens
# mistake: units
# says: (0.5 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return (n - 1) / n * flops / (2 * bandwidth)
