"""The seconds are those of a window of one."""
# caught by: test_smallest_window
# says: the seconds is 14, expected 8
# %% smallest_window: changed
# -     return k, seconds(k)
# +     return k, seconds(1)
