"""A window of k + 1 layers: the one that is computed is not counted."""


# caught by: test_through_window
# mistake: one_off
# says: 2 layers were on the device at one time; the window is 1
# %% through_window: changed
# -         while len(coming) < k and i + len(coming) < len(vectors):
# +         while len(coming) < k + 1 and i + len(coming) < len(vectors):
