"""The weights are right, the losses are left out."""
# caught by: test_train
# mistake: wrong_kind
# %% train: changed
# -         losses.append(error.square().mean().item())
