"""In the backward pass a layer is copied ahead, and once more when it is needed."""
# caught by: test_through_window
# mistake: too_much_sent
# says: layer 6 was copied to the device 2 times, expected once
# %% through_window: changed
# -         gradient, of_vector = differentiate(i, coming.popleft().wait(), inputs[i], gradient)
# +         coming.popleft()
# +         gradient, of_vector = differentiate(i, link.to_device(vectors[i]), inputs[i], gradient)
