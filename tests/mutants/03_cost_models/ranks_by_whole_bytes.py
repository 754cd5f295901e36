"""Divides by //, so a part of a byte too much still fits."""
# caught by: test_least_ranks
# mistake: rounded_wrongly
# says: returned 7, expected 8
# %% least_ranks: changed
# -     return ceil(divided / room) if room > 0 else None
# +     return next((n for n in range(1, 10_000_000) if divided // n <= room), None) if room > 0 else None
