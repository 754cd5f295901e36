"""Milliseconds, where seconds were asked for."""
# caught by: test_exposed
# says: (1e+03 times it: milliseconds, not seconds?)
# %% exposed: changed
# -     return seconds
# +     return 1000 * seconds
