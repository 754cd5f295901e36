"""A number of micro-batches that is not whole."""
# caught by: test_least_micro_batches
# mistake: rounded_wrongly
# says: not a whole number from 1
# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    return max(1.0, (stages - 1) * (1 - share) / (share * pieces))
