"""A layer is copied ahead, and once more when it is needed."""


# caught by: test_through_window
# mistake: too_much_sent
# says: layer 0 was copied to the device 2 times, expected once
# %% through_window: changed
# -         x = compute(i, coming.popleft().wait(), x)
# +         coming.popleft().wait()
# +         x = compute(i, link.to_device(vectors[i]), x)
