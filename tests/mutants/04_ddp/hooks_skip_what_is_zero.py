"""Leaves out gradients that are zeros: other ranks' are not, and wait."""
# caught by: test_average_in_hooks
# mistake: not_every_rank
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# +         if not parameter.grad.any():
# +             return
# +         dist.all_reduce(parameter.grad)
