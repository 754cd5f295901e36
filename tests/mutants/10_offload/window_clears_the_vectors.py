"""Clears a layer in host memory when it has been computed."""
# caught by: test_through_window
# mistake: changes_its_input
# says: the vectors in host memory were changed
# %% through_window: changed
# -         gradient, of_vector = differentiate(i, coming.popleft().wait(), inputs[i], gradient)
# +         gradient, of_vector = differentiate(i, coming.popleft().wait(), inputs[i], gradient)
# +         vectors[i].zero_()
