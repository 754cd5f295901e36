"""Leaves the 2 of the derivative out."""
# caught by: test_train
# mistake: magnitude
# %% train: changed
# -         gradient = 2 * x.T @ error / samples
# +         gradient = x.T @ error / samples
