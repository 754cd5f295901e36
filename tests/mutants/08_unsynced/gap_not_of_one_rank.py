"""A single rank is an error."""


# caught by: test_metropolis
# mistake: special_case
# says: raised IndexError: index -2 is out of bounds for dimension 0 with size 1
# %% metropolis: changed
# -     return 1 - magnitudes[-2].item() if len(weights) > 1 else 1.0
# +     return 1 - magnitudes[-2].item()
