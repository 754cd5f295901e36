"""Doubles m until it is enough."""
# caught by: test_least_micro_batches
# mistake: search_too_short
# %% least_micro_batches: changed
# -         m += 1
# +         m *= 2
