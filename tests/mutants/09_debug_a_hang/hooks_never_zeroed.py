"""zero_grad is forgotten, so gradients of all steps add up."""
# caught by: test_train_with_hooks
# says: x
# %% train_with_hooks: changed
# -         model.zero_grad()
