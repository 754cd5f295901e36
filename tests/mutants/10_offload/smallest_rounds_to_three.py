"""Times are rounded to three places."""


# caught by: test_smallest_window
# mistake: rounded_wrongly
# says: the window is 1, expected 2
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next(k for k in range(1, layers + 1) if round(seconds(k), 3) <= round(best, 3))
