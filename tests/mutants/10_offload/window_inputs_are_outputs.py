"""The list has what the layers returned, not what they were given."""


# caught by: test_through_window
# mistake: one_of_a_kind
# says: inputs[0] has shape (2, 30), expected (2, 24)
# %% through_window: changed
# -         inputs.append(x)
# -         x = compute(i, coming.popleft().wait(), x)
# +         x = compute(i, coming.popleft().wait(), x)
# +         inputs.append(x)
