"""The eigenvalue that belongs to the mean is taken."""


# caught by: test_metropolis
# mistake: one_of_a_kind
# says: the gap is 0, expected 0.666667; that is for the 1 that belongs to the mean
# %% metropolis: changed
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     return 1 - magnitudes[-1].item()
