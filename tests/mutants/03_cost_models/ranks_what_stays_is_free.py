"""Leaves out what is not divided."""
# caught by: test_least_ranks
# mistake: part_missing
# %% least_ranks: changed
# -     room = memory - (16 * params - divided)  # for this rank's part of what is divided
# +     room = memory  # for this rank's part of what is divided
