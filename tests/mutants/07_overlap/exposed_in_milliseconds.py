"""Milliseconds, where seconds were asked for."""
# caught by: test_exposed
# says: (1e+03 times it)
# %% exposed: changed
# -     return seconds
# +     return 1000 * seconds
