"""Idle time over the work alone, and not over the step."""
# caught by: test_least_micro_batches
# mistake: one_of_a_kind
# says: micro-batches are enough
# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    m = 1
    while (stages - 1) / (pieces * m) > share * (1 + 1e-12):
        m += 1
    return m
