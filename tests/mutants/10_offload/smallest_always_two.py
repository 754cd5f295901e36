"""Two are enough for equal layers, and so for all."""


# caught by: test_smallest_window
# mistake: shown_cases_only
# says: the window is 2, expected 3 (0.667 times it)
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = min(2, layers)
