"""zero_grad is forgotten, so gradients of all steps add up."""
# caught by: test_train_with_hooks
# mistake: state_between_steps
# says: is its gradient added to that of the step before: call zero_grad
# %% train_with_hooks: changed
# -         model.zero_grad()
