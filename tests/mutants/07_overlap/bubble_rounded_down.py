"""Rounds down."""
# caught by: test_least_micro_batches
# mistake: rounded_wrongly
# says: of the step idle
# %% least_micro_batches
def least_micro_batches(stages, share, pieces):
    return max(1, int((stages - 1) * (1 - share) / (share * pieces) - 0.5))
