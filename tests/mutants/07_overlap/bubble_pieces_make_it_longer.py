"""More pieces, more bubble."""
# caught by: test_least_micro_batches
# mistake: reversed
# says: micro-batches are enough
# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    m = 1
    while pieces * (stages - 1) / (m + pieces * (stages - 1)) > share * (1 + 1e-12):
        m += 1
    return m
