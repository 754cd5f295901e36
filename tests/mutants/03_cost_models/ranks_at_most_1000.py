"""Tries numbers of ranks and gives up at 1,000."""
# caught by: test_least_ranks
# mistake: search_too_short
# %% least_ranks
def least_ranks(params, stage, memory):
    for n in range(1, 1001):
        if state_bytes(params, stage, n) <= memory:
            return n
    return None
