"""The broken program, handed in under the new name: the sum of the gradients."""
# caught by: test_train
# mistake: sum_or_mean
# %% train
def train(seed, samples, lr, steps):
    return broken_train(seed, samples, lr, steps)
