"""Starts the all-reduce and divides at once."""
# caught by: test_train_with_hooks
# mistake: never_waits
# %% train_with_hooks: changed
# -         dist.all_reduce(parameter.grad)
# +         dist.all_reduce(parameter.grad, async_op=True)
