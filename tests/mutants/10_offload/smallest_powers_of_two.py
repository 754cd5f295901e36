"""Doubles the window until it is large enough."""


# caught by: test_smallest_window
# mistake: search_too_short
# says: the window is 4, expected 3
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next(k for k in (1, 2, 4, 8, 16, 32, 64) if seconds(k) <= best * (1 + 1e-9))
