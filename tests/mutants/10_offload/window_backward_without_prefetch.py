"""The backward pass copies each layer when it is needed."""


# caught by: test_through_window
# mistake: no_overlap
# says: when layer 6 was computed, the copy of layer 5 had not begun; the window of 2 has room for it
# %% through_window: changed
# -         while len(coming) < k and i - len(coming) >= 0:
# -             coming.append(link.start_to_device(vectors[i - len(coming)]))
# +         coming.append(link.start_to_device(vectors[i]))
