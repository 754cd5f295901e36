"""Forgets the pieces."""
# caught by: test_least_micro_batches
# mistake: part_missing
# says: 62 micro-batches are enough
# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    m = 1
    while (stages - 1) / (m + stages - 1) > share * (1 + 1e-12):
        m += 1
    return m
