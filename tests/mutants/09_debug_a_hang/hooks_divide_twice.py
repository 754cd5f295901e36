"""The hook divides, and so does the step."""
# caught by: test_train_with_hooks
# mistake: sum_or_mean
# %% train_with_hooks: changed
# -                 parameter -= lr * parameter.grad
# +                 parameter -= lr * parameter.grad / n
