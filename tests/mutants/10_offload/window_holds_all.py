"""All layers are copied before the first one is computed."""


# caught by: test_through_window
# mistake: kept_in_memory
# says: 7 layers were on the device at one time; the window is 1
# %% through_window: changed
# -         while len(coming) < k and i + len(coming) < len(vectors):
# +         while i + len(coming) < len(vectors):
