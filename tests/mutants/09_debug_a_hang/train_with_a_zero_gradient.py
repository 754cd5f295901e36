"""All ranks agree on a gradient of zero."""
# caught by: test_train
# mistake: zeros
# %% train: changed
# -         gradient = 2 * x.T @ error / samples
# +         gradient = torch.zeros(4)
