"""Tries windows up to ten, and else says that all layers are needed."""
# caught by: test_smallest_window
# mistake: search_too_short
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = next((k for k in range(1, min(layers, 10) + 1) if seconds(k) <= best * (1 + 1e-9)), layers)
