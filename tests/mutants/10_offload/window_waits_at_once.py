"""The next layers are copied before this one is computed, and waited for."""


# caught by: test_through_window
# mistake: no_overlap
# says: the copy of layer 1 was waited for before layer 0 was computed
# %% through_window: changed
# -             coming.append(link.start_to_device(vectors[i + len(coming)]))
# +             coming.append(link.to_device(vectors[i + len(coming)]))
# @@
# -         x = compute(i, coming.popleft().wait(), x)
# +         x = compute(i, coming.popleft(), x)
