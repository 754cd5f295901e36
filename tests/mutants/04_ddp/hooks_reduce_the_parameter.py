"""The hook takes what it is given for the gradient, and it is the parameter: gradients are never synchronised."""
# caught by: test_average_in_hooks
# mistake: parameters_for_gradients
# says: is that of its own part: it was not averaged
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         with torch.no_grad():
# +             dist.all_reduce(parameter)
# +             parameter /= dist.get_world_size()
