"""Of the window's places one stays empty."""


# caught by: test_through_window
# mistake: one_off
# says: when layer 0 was computed, the copy of layer 1 had not begun; the window of 2 has room for it
# %% through_window: changed
# -         while len(coming) < k and i + len(coming) < len(vectors):
# +         while len(coming) < max(1, k - 1) and i + len(coming) < len(vectors):
