"""The weights are right, the losses are left out."""
# caught by: test_train
# %% train: changed
# -         losses.append(error.square().mean().item())
