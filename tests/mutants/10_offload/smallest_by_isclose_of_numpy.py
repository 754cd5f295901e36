"""np.isclose with its usual tolerance, one in 100,000."""


# caught by: test_smallest_window
# mistake: threshold_ignored
# says: the window is 1, expected 2
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next(k for k in range(1, layers + 1) if abs(seconds(k) - best) <= 1e-5 * best + 1e-8)
