"""Stops at the first window after which one more saves nothing."""


# caught by: test_smallest_window
# mistake: search_too_short
# says: the window is 2, expected 5
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next((k for k in range(1, layers) if seconds(k) <= seconds(k + 1) * (1 + 1e-9)), layers)
