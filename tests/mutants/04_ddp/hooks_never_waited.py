"""Starts the all-reduce and divides at once; nobody waits for it."""
# caught by: test_average_in_hooks
# mistake: never_waits
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# +         dist.all_reduce(parameter.grad, async_op=True)
