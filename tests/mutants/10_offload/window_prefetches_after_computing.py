"""The next copies begin when the layer is computed."""


# caught by: test_through_window
# mistake: no_overlap
# says: when layer 0 was computed, the copy of layer 1 had not begun; the window of 2 has room for it
# %% through_window: changed
# -         while len(coming) < k and i + len(coming) < len(vectors):
# -             coming.append(link.start_to_device(vectors[i + len(coming)]))
# -         inputs.append(x)
# -         x = compute(i, coming.popleft().wait(), x)
# +         if not coming:
# +             coming.append(link.start_to_device(vectors[0]))
# +         inputs.append(x)
# +         x = compute(i, coming.popleft().wait(), x)
# +         while len(coming) < k and i + 1 + len(coming) < len(vectors):
# +             coming.append(link.start_to_device(vectors[i + 1 + len(coming)]))
