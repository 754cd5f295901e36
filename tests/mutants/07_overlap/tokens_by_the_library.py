"""Asks the library, which the notebook imports."""
# caught by: test_least_tokens
# mistake: ready_made
# says: write it yourself
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return overlap.min_tokens_for_data_parallel(flops, bandwidth, n, element)
