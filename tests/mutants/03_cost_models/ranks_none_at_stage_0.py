"""Stage 0 never fits."""
# caught by: test_least_ranks
# mistake: special_case
# %% least_ranks: changed
# -         return 1 if room >= 0 else None
# +         return None
