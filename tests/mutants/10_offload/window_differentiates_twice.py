"""Each layer's gradients are computed twice, once for each of the two results."""


# caught by: test_through_window
# mistake: counted_twice
# says: layer 6 was computed 2 times, expected once
# %% through_window: changed
# -         gradient, of_vector = differentiate(i, coming.popleft().wait(), inputs[i], gradient)
# +         w = coming.popleft().wait()
# +         _, of_vector = differentiate(i, w, inputs[i], gradient)
# +         gradient, _ = differentiate(i, w, inputs[i], gradient)
# +         del w
