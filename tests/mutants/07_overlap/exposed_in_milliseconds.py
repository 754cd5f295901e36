"""Milliseconds, where seconds were asked for."""
# caught by: test_exposed
# says: x
# %% exposed: changed
# -     return seconds
# +     return 1000 * seconds
