"""The same messages, and none of them is used."""
# caught by: test_average_in_hooks
# mistake: not_exchanged
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         gradient = parameter.grad / dist.get_world_size()
# +         dist.all_reduce(gradient)
