"""Compares times of floats to the last bit."""
# caught by: test_smallest_window
# mistake: one_of_a_kind
# says: the window is
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next(k for k in range(1, layers + 1) if seconds(k) == best)
