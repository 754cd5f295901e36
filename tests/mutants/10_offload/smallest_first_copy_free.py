"""The first layer is there already."""


# caught by: test_smallest_window
# mistake: part_missing
# says: the seconds is 7, expected 8
# %% smallest_window: changed
# -             copied = max(copied, free) + copies[i]
# +             copied = max(copied, free) + (copies[i] if i else 0.0)
