"""A window of one is never enough."""
# caught by: test_smallest_window
# mistake: special_case
# says: the window is 2, expected 1
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next((k for k in range(2, layers + 1) if seconds(k) <= best * (1 + 1e-9)), 2)
