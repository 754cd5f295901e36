"""The whole gradients stay where they were."""


# caught by: test_mean_gradient
# mistake: kept_in_memory
# says: still has its .grad
# %% mean_gradient: changed
# -     for p in flat.parameters:
# -         p.grad = None
