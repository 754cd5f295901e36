"""The mean of the passes' gradients."""


# caught by: test_OverlappedHostAdam
# mistake: sum_or_mean
# says: with (seed=2
# %% OverlappedHostAdam: changed
# -             master.grad = sum(gradients)
# +             master.grad = sum(gradients) / len(gradients)
