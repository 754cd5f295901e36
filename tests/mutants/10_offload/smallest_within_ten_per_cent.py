"""A window that loses a tenth of the time counts as good enough."""


# caught by: test_smallest_window
# mistake: one_off
# says: the window is 8, expected 9
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * 1.1)
