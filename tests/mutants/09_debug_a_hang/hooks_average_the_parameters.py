"""The hook takes the step with the rank's own gradient, then averages the parameter."""
# caught by: test_train_with_hooks
# mistake: parameters_for_gradients
# says: is not its gradient
# %% train_with_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= n
# +         with torch.no_grad():
# +             parameter -= lr * parameter.grad
# +             dist.all_reduce(parameter.data)
# +             parameter /= n
# @@
# -         with torch.no_grad():
# -             for parameter in model.parameters():
# -                 parameter -= lr * parameter.grad
