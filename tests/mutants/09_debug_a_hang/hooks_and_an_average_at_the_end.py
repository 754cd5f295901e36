"""The hook is left as it was, and the parameters are averaged once more before they are returned."""
# caught by: test_train_with_hooks
# mistake: parameters_for_gradients
# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    parameters = broken_hooks(seed, samples, hidden, lr, steps)
    dist.all_reduce(parameters)
    return parameters / dist.get_world_size()
