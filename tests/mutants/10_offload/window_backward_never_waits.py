"""Takes what the copy makes without waiting, in the backward pass."""


# caught by: test_through_window
# mistake: never_waits
# says: and nobody had waited for its copy
# %% through_window: changed
# -         gradient, of_vector = differentiate(i, coming.popleft().wait(), inputs[i], gradient)
# +         gradient, of_vector = differentiate(i, coming.popleft()._made, inputs[i], gradient)
