"""It returns the eigenvalue."""


# caught by: test_metropolis
# mistake: one_of_a_kind
# says: the gap is 0.333333, expected 0.666667; that is the eigenvalue
# %% metropolis: changed
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     return magnitudes[-2].item() if len(weights) > 1 else 0.0
