"""The broken program, handed in under the new name: the hook averages the parameter."""
# caught by: test_train_with_hooks
# mistake: parameters_for_gradients
# %% train_with_hooks
def train_with_hooks(seed, samples, hidden, lr, steps):
    return broken_hooks(seed, samples, hidden, lr, steps)
