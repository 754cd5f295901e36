"""The seconds are those of a window of one."""
# caught by: test_smallest_window
# mistake: one_of_a_kind
# says: the seconds is 14, expected 8
# %% smallest_window: changed
# -     return k, seconds(k)
# +     return k, seconds(1)
