"""Tries more and more ranks, for ever."""
# caught by: test_least_ranks
# mistake: no_end
# %% least_ranks
def least_ranks(params, stage, memory):
    n = 1
    while state_bytes(params, stage, n) > memory:
        n += 1
    return n
