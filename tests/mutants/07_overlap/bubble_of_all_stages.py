"""P idle micro-batches instead of P - 1."""
# caught by: test_least_micro_batches
# mistake: one_off
# says: micro-batches are enough
# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    m = 1
    while stages / (pieces * m + stages) > share * (1 + 1e-12):
        m += 1
    return m
