"""The backward pass copies all layers at its begin."""


# caught by: test_through_window
# mistake: kept_in_memory
# says: 7 layers were on the device at one time; the window is 1
# %% through_window: changed
# -         while len(coming) < k and i - len(coming) >= 0:
# +         while i - len(coming) >= 0:
