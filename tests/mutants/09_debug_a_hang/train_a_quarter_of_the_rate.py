"""A quarter of the rate, which is right on four ranks."""
# caught by: test_train
# mistake: some_ranks_only
# %% train
def train(seed, samples, lr, steps):
    return broken_train(seed, samples, lr / 4, steps)
