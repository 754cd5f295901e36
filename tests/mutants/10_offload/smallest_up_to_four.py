"""Tries windows of up to four layers."""
# caught by: test_smallest_window
# mistake: search_too_short
# says: the window is 4, expected 9
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next((k for k in range(1, min(layers, 4)) if seconds(k) <= best * (1 + 1e-9)), min(layers, 4))
