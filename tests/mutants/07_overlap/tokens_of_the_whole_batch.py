"""Gives the tokens of all ranks together."""
# caught by: test_least_tokens
# mistake: one_of_a_kind
# says: (8 times it)
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return element / 2 * (n - 1) * flops / bandwidth
