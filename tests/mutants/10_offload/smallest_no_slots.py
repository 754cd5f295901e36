"""Copies never wait for a place: every window is as fast."""


# caught by: test_smallest_window
# mistake: link_not_shared
# says: the window is 1, expected 2 (0.5 times it)
# %% smallest_window: changed
# -             free = done[i - k] if i >= k else 0.0
# +             free = 0.0
