"""Doubles the number until it fits."""
# caught by: test_least_ranks
# mistake: some_ranks_only
# %% least_ranks
def least_ranks(params, stage, memory):
    for k in range(12):
        if state_bytes(params, stage, 2**k) <= memory:
            return 2**k
    return None
