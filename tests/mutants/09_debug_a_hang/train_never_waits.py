"""Starts the all-reduce and goes on."""
# caught by: test_train
# mistake: never_waits
# %% train: changed
# -         dist.all_reduce(gradient)
# +         dist.all_reduce(gradient, async_op=True)
