"""Milliseconds, where seconds were asked for."""
# caught by: test_exposed
# mistake: units
# says: (1e+03 times it: milliseconds, not seconds?)
# %% exposed: changed
# -     return seconds
# +     return 1000 * seconds
