"""All eigenvalues 1 are left out: a graph in two parts seems to agree."""


# caught by: test_metropolis
# mistake: special_case
# says: the gap is 0.666667, expected 0; that leaves out every eigenvalue 1
# %% metropolis: changed
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     return 1 - max([x for x in magnitudes.tolist() if x < 1 - 1e-9], default=0.0)
