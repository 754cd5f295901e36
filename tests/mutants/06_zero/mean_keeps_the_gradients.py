"""The whole gradients stay where they were."""


# caught by: test_mean_gradient
# %% mean_gradient: changed
# -     for p in flat.parameters:
# -         p.grad = None
