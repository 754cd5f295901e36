"""No rank where it does not fit."""
# caught by: test_least_ranks
# mistake: wrong_kind
# %% least_ranks: changed
# -     return ceil(divided / room) if room > 0 else None
# +     return ceil(divided / room) if room > 0 else 0
