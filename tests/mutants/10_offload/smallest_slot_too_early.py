"""A copy begins while the layer whose place it takes is computed."""


# caught by: test_smallest_window
# mistake: too_early
# says: the window is 1, expected 2 (0.5 times it)
# %% smallest_window: changed
# -             free = done[i - k] if i >= k else 0.0
# +             free = done[i - k - 1] if i > k else 0.0
