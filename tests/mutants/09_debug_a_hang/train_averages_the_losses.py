"""Returns the mean loss... of its own, of all steps so far."""
# caught by: test_train
# mistake: wrong_kind
# %% train: changed
# -         losses.append(error.square().mean().item())
# +         losses.append((sum(losses) + error.square().mean().item()) / (len(losses) + 1))
