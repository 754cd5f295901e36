"""A rank more than enough."""
# caught by: test_least_ranks
# mistake: one_off
# %% least_ranks: changed
# -     return ceil(divided / room) if room > 0 else None
# +     return floor(divided / room) + 1 if room > 0 else None
