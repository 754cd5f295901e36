"""Adds what a rank receives to what it sends, though both happen at once."""
# caught by: test_least_tokens
# mistake: counted_twice
# says: (2 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return element * (n - 1) / n * flops / bandwidth
