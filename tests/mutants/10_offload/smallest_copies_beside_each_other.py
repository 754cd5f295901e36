"""Copies go on at the same time, as if each had a link."""


# caught by: test_smallest_window
# mistake: link_not_shared
# says: the window is 3, expected 2 (1.5 times it)
# %% smallest_window: changed
# -             copied = max(copied, free) + copies[i]
# +             copied = free + copies[i]
