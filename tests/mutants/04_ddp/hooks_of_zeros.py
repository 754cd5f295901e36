"""Averages a buffer that was never filled: on every rank the same gradients, all zeros."""
# caught by: test_average_in_hooks
# mistake: zeros
# says: is all zeros
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         flat = torch.zeros_like(parameter)
# +         dist.all_reduce(flat)
# +         parameter.grad = flat / dist.get_world_size()
