"""Whole nodes of eight."""
# caught by: test_least_ranks
# mistake: rule_of_thumb
# %% least_ranks: changed
# -     return ceil(divided / room) if room > 0 else None
# +     return 8 * ceil(divided / room / 8) if room > 0 else None
