"""Each layer is copied when it is needed; k is not used."""


# caught by: test_through_window
# mistake: argument_ignored
# says: when layer 0 was computed, the copy of layer 1 had not begun; the window of 2 has room for it
# %% through_window: changed
# -         while len(coming) < k and i + len(coming) < len(vectors):
# -             coming.append(link.start_to_device(vectors[i + len(coming)]))
# +         coming.append(link.start_to_device(vectors[i]))
