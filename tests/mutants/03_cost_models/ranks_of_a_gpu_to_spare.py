"""Asks for less than the memory, where all of it may be used."""
# caught by: test_least_ranks
# mistake: one_off
# %% least_ranks
def least_ranks(params, stage, memory):
    for n in range(1, 5000):
        if state_bytes(params, stage, n) < memory:
            return n
    return None
