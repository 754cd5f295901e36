"""ReduceOp.AVG, which NCCL has and gloo has not."""
# caught by: test_average_in_hooks
# says: x
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG)
