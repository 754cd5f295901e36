"""Computation over communication."""
# caught by: test_least_tokens
# mistake: reversed
# says: the number of tokens is
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return 2 * bandwidth * n / (element * (n - 1) * flops)
