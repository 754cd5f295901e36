"""The largest gradient of all ranks, where the mean was wanted: a wrong ReduceOp."""
# caught by: test_average_in_hooks
# mistake: sum_or_mean
# says: has the largest numbers of all ranks, not their mean
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         dist.all_reduce(parameter.grad, op=dist.ReduceOp.MAX)
